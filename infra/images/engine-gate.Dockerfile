# The gate between workers and an engine, and with it the images that boxes are made of: an engine that has never seen the farm
# gets them from here. Context: a folder with images.json and the archives (build.sh makes it).
ARG FARM=rollout-farm/farm:latest
FROM ${FARM}
COPY . /opt/sandbox/
CMD ["engine-gate", "--listen", "unix:///run/farm/engine.sock", "--images", "/opt/sandbox"]

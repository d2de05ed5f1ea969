// A box made new: everything of both uids killed, their writable folders and all shared memory emptied, and then looked at
// again. Whatever is still there is named to the driver, who then gives the box up.
#include "box.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char *const folders[] = {"/work", "/tmp", "/dev/shm", "/dev/mqueue", "/judge"};
enum { FOLDERS = 5 };

static int dot(const char *name) { return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0)); }

// Moves the folders inside `name` up beside it and removes the rest: a chain of any depth goes with two descriptors.
static int flatten(int root, const char *name, uint64_t *serial, uint64_t *gone) {
  fchmodat(root, name, 0700, 0);
  int opened = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *folder = opened < 0 ? NULL : fdopendir(opened);
  if (folder == NULL) {
    if (opened >= 0) close(opened);
    return -1;
  }
  struct dirent *entry;
  while ((entry = readdir(folder)) != NULL) {
    if (dot(entry->d_name)) continue;
    if (unlinkat(opened, entry->d_name, 0) == 0) {
      (*gone)++;
      continue;
    }
    char up[32];
    fchmodat(opened, entry->d_name, 0700, 0);
    do snprintf(up, sizeof up, ".gone-%llu", (unsigned long long)(*serial)++);
    while (faccessat(root, up, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    if (unlinkat(opened, entry->d_name, AT_REMOVEDIR) == 0 || renameat(opened, entry->d_name, root, up) == 0) (*gone)++;
  }
  closedir(folder);
  return unlinkat(root, name, AT_REMOVEDIR);
}

// Until nothing is left, or nothing more goes: what is another uid's, that uid removes.
static void empty(const char *path) {
  uint64_t serial = 0, gone = 1, end = now_us() + 10000000;
  for (int left = 1; left > 0 && gone > 0 && now_us() < end;) {
    DIR *folder = opendir(path);
    if (folder == NULL) return;
    struct dirent *entry;
    left = 0;
    gone = 0;
    while ((entry = readdir(folder)) != NULL) {
      if (dot(entry->d_name)) continue;
      if (unlinkat(dirfd(folder), entry->d_name, 0) != 0) {
        left++;
        if (flatten(dirfd(folder), entry->d_name, &serial, &gone) != 0) continue;
      }
      gone++;
    }
    closedir(folder);
  }
}

static int entries_in(const char *path) {
  DIR *folder = opendir(path);
  if (folder == NULL) return errno == ENOENT ? 0 : 1;
  int count = 0;
  struct dirent *entry;
  while ((entry = readdir(folder)) != NULL)
    if (!dot(entry->d_name)) count++;
  closedir(folder);
  return count;
}

// Removes (or, with `remove` 0, counts) what /proc/sysvipc/KIND lists; the id is its second number.
static int shared(const char *kind, int remove) {
  char path[40], line[512];
  int count = 0;
  snprintf(path, sizeof path, "/proc/sysvipc/%s", kind);
  FILE *list = fopen(path, "re");
  if (list == NULL) return 0;
  while (fgets(line, sizeof line, list) != NULL) {
    int id;
    if (sscanf(line, "%*d %d", &id) != 1) continue;
    count++;
    if (!remove) continue;
    if (kind[0] == 's' && kind[1] == 'h') shmctl(id, IPC_RMID, NULL);
    else if (kind[0] == 's') semctl(id, 0, IPC_RMID);
    else msgctl(id, IPC_RMID, NULL);
  }
  fclose(list);
  return count;
}

static void report(uint32_t survivors, const char *what) {
  uint8_t head[4];
  put_u32(head, survivors);
  send_frame('x', head, 4, what, (uint32_t)strlen(what));
}

static const char *const kinds[] = {"shm", "sem", "msg"};

static void wipe(enum place place) {
  become(place);
  for (int i = 0; i < FOLDERS; i++) {
    // fails where it is not ours, and then need not be done
    if (i != 3) chmod(folders[i], i == 0 ? 0755 : i == 4 ? 0700 : 01777);
    empty(folders[i]);
  }
  for (int i = 0; i < 3; i++) shared(kinds[i], 1);
  become_root();
}

static int left_in(int which) {
  become(which == 4 ? JUDGE : WORK);
  int count = entries_in(folders[which]);
  become_root();
  return count;
}

void reset_box(void) {
  if (kill_all() != 0) return report(1, "process");
  wipe(WORK);
  wipe(JUDGE);
  wipe(WORK);  // what lay in folders of the judge's
  int count = others();
  if (count > 0) return report((uint32_t)count, "process");
  for (int i = 0; i < FOLDERS; i++)
    if ((count = left_in(i)) > 0) return report((uint32_t)count, folders[i]);
  for (int i = 0; i < 3; i++)
    if ((count = shared(kinds[i], 0)) > 0) return report((uint32_t)count, kinds[i]);
  for (int i = 0; i < FOLDERS; i++) {
    struct statvfs use;
    if (i == 3) continue;
    // the folder itself is the one inode of an empty tmpfs; more would be files that somebody still holds
    if (statvfs(folders[i], &use) != 0 || use.f_files - use.f_ffree > 1) return report(1, folders[i]);
  }
  report(0, "");
}

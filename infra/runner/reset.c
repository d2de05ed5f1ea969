// A box made new: everything of both uids killed, their writable folders and all shared memory emptied, what they could
// set on those folders put back, and then looked at again, also what they could have done to us while we had their uid. Whatever is
// still there is named to the driver, who then gives the box up.
#include "box.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *const folders[] = {"/work", "/tmp", "/dev/shm", "/dev/mqueue", "/judge"};
static const mode_t modes[] = {0755, 01777, 01777, 0, 0700};
enum { FOLDERS = 5, MQUEUE = 3 };
// What is freed after its owner's death (a socket in flight, a connection that closes) is given this long.
enum { SETTLE_US = 500000 };

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

// Names of attributes that anybody but the engine can have set: lists of access and the user's own.
static int marks(const char *folder, int remove) {
  char names[4096];
  int count = 0;
  ssize_t size = listxattr(folder, names, sizeof names);
  if (size < 0) return errno == ENOTSUP || errno == EACCES ? 0 : 1;
  for (char *name = names; name < names + size; name += strlen(name) + 1) {
    if (strncmp(name, "user.", 5) != 0 && strncmp(name, "system.posix_acl", 16) != 0) continue;
    count++;
    if (remove) removexattr(folder, name);
  }
  return count;
}

// Mode, attributes, flags and times of a folder as they were. Each call fails where the folder is not ours, and then need not be done.
static void restore(int which) {
  const char *folder = folders[which];
  int opened, flags = 0;
  if (which == MQUEUE || chmod(folder, modes[which]) != 0) return;
  marks(folder, 1);
  if ((opened = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) >= 0) {
    ioctl(opened, _IOW('f', 2, long), &flags);
    close(opened);
  }
  utimensat(AT_FDCWD, folder, NULL, 0);
}

// An engine gives each mount the mode that the image has there.
void fit_folders(void) {
  static const enum place places[] = {FARM, WORK, JUDGE};
  for (int p = 0; p < 3; p++) {
    if (places[p] != FARM) become(places[p]);
    for (int i = 0; i < FOLDERS; i++)
      if (i != MQUEUE) chmod(folders[i], modes[i]);
    become_root();
  }
}

static int changed(int which) {
  struct stat stat;
  int opened, flags = 0, wrong;
  if (which == MQUEUE) return 0;
  if (lstat(folders[which], &stat) != 0 || (stat.st_mode & 07777) != modes[which] || marks(folders[which], 0) > 0) return 1;
  if ((opened = open(folders[which], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) return 1;
  wrong = ioctl(opened, _IOR('f', 1, long), &flags) == 0 && (flags & 0xf0) != 0;  // append, immutable, no dump, no access time
  close(opened);
  return wrong;
}

static void wipe(enum place place) {
  become(place);
  for (int i = 0; i < FOLDERS; i++) {
    restore(i);
    empty(folders[i]);
    restore(i);
  }
  for (int i = 0; i < 3; i++) shared(kinds[i], 1);
  become_root();
}

static int left_in(int which) {
  become(which == 4 ? JUDGE : WORK);
  int count = entries_in(folders[which]) + changed(which);
  become_root();
  return count;
}

// Sockets of the box, connections that close included, as the kernel counts them for this network: its tables would list
// them, but searching them takes milliseconds. A nursery that waits for its next grade has the two ends of its control socket.
static int sockets(void) {
  static const char *const files[] = {"/proc/net/sockstat", "/proc/net/sockstat6"};
  char line[256];
  int of_network = 0, all = 0;
  for (int i = 0; i < 2; i++) {
    FILE *list = fopen(files[i], "re");
    if (list == NULL) continue;
    while (fgets(line, sizeof line, list) != NULL) {
      int count = 0, waiting = 0;
      sscanf(line, "sockets: used %d", &all);
      if (strncmp(line, "FRAG", 4) != 0 && sscanf(line, "%*s inuse %d orphan %*d tw %d", &count, &waiting) >= 1) of_network += count + waiting;
    }
    fclose(list);
  }
  return of_network > 0 ? of_network : all - (nursery != 0 ? 2 : 0);
}

// Keys belong to an uid and not to a process.
static int keys(void) {
  char line[256];
  int count = 0;
  FILE *list = fopen("/proc/key-users", "re");
  if (list == NULL) return 0;
  while (fgets(line, sizeof line, list) != NULL) {
    unsigned long uid = strtoul(line, NULL, 10);
    if (uid == settings.uid || uid == settings.judge_uid) count++;
  }
  fclose(list);
  return count;
}

static int terminals(void) {
  DIR *folder = opendir("/dev/pts");
  if (folder == NULL) return 0;
  int count = 0;
  struct dirent *entry;
  while ((entry = readdir(folder)) != NULL)
    if (isdigit((unsigned char)entry->d_name[0])) count++;
  closedir(folder);
  return count;
}

// While we have an uid of the box's, what runs under it may set our priorities and our processors, and our children would have them.
struct standing {
  int nice, policy, io;
  uint64_t turn;
  uint8_t processors[128];
};
static struct standing first;

static void stand(struct standing *now) {
  memset(now, 0, sizeof *now);
  now->nice = getpriority(PRIO_PROCESS, 0);
  now->policy = (int)syscall(SYS_sched_getscheduler, 0);
  struct scheduling have = {0};
  if (syscall(SYS_sched_getattr, 0, &have, sizeof have, 0) == 0) now->turn = have.turn;
  now->io = (int)syscall(SYS_ioprio_get, 1, 0);
  syscall(SYS_sched_getaffinity, 0, sizeof now->processors, now->processors);
}

void remember_standing(void) { stand(&first); }

// What is left, counted; `what` says of which kind.
static int survivors(const char **what) {
  int count;
  struct standing now;
  *what = "process";
  if ((count = others()) > 0) return count;
  for (int i = 0; i < FOLDERS; i++)
    if (*what = folders[i], (count = left_in(i)) > 0) return count;
  for (int i = 0; i < 3; i++)
    if (*what = kinds[i], (count = shared(kinds[i], 0)) > 0) return count;
  for (int i = 0; i < FOLDERS; i++) {
    struct statvfs use;
    if (i == MQUEUE) continue;
    *what = folders[i];
    // the folder itself is the one inode of an empty tmpfs; more would be files that somebody still holds
    if (statvfs(folders[i], &use) != 0 || use.f_files - use.f_ffree > 1) return 1;
  }
  if (*what = "sockets", (count = sockets()) > 0) return count;
  if (*what = "keys", (count = keys()) > 0) return count;
  if (*what = "terminals", (count = terminals()) > 0) return count;
  stand(&now);
  if (*what = "priorities", memcmp(&now, &first, sizeof now) != 0) return 1;
  *what = "";
  return 0;
}

void reset_box(void) {
  if (kill_all() != 0) return report(1, "process");
  wipe(WORK);
  wipe(JUDGE);
  wipe(WORK);  // what lay in folders of the judge's
  const char *what;
  int count;
  for (uint64_t end = now_us() + SETTLE_US; (count = survivors(&what)) > 0 && now_us() < end;) {
    int pair[2];
    // the end of any socket has the kernel look for those that only hold each other
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
      close(pair[0]);
      close(pair[1]);
    }
    usleep(1000);
  }
  report((uint32_t)count, what);
}

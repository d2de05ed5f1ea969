// The border to the untrusted uids: taking one on for a moment, giving a child to it for good, killing all that is its own.
// A kill needs neither CAP_KILL nor a fork: as that uid (the real one too, or root's processes would be hit), kill(-1)
// reaches exactly what was started under it; the saved uid 0 is the way back.
#include "box.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RESET_ON_FORK = 1, SHORT_TURN_NS = 100000 };

int child_signals = -1;
static int counters[2] = {-1, -1};
static const char *words[2] = {"oom_kill ", "max "};

void user_init(void) {
  prctl(PR_SET_DUMPABLE, 0);
  signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  child_signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (child_signals < 0 || setgroups(0, NULL) != 0) _exit(72);
  hasten(0);
  // nothing of it is needed, and not every kernel keeps /proc/1/environ from others
  for (char **one = environ; *one != NULL; one++) memset(*one, 0, strlen(*one));
  *environ = NULL;
  static const char *files[2][2] = {{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"},
                                    {"/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"}};
  for (int which = 0; which < 2; which++)
    for (int version = 0; version < 2 && counters[which] < 0; version++)
      counters[which] = open(files[which][version], O_RDONLY | O_CLOEXEC);
}

uint64_t counter(int which) {
  char text[512];
  if (counters[which] < 0) return 0;
  ssize_t size = pread(counters[which], text, sizeof text - 1, 0);
  if (size <= 0) return 0;
  text[size] = 0;
  for (char *line = text; line != NULL; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (strncmp(line, words[which], strlen(words[which])) == 0) return strtoull(line + strlen(words[which]), NULL, 10);
  }
  return 0;
}

const char *const place_folder[3] = {"/work", "/judge", "/farm"};

void become(enum place place) {
  if (place == FARM) return;
  uid_t uid = place == WORK ? settings.uid : settings.judge_uid;
  gid_t gid = place == WORK ? settings.gid : settings.judge_gid;
  if (setresgid(gid, gid, 0) != 0 || setresuid(uid, uid, 0) != 0) fatal("cannot take on an uid of the box");
}

void become_root(void) {
  if (setresuid(0, 0, 0) != 0 || setresgid(0, 0, 0) != 0) _exit(73);
  prctl(PR_SET_DUMPABLE, 0);
}

// How long a turn we ask for: the kernel lets first whoever's turn would end first (6.12 and later; older ones ignore it).
// Not the nice value: a box is weighed on each processor by what of it runs there, so that code that is nicer than its
// runner is starved by any other box, and a crowd at nice 19 still kept the runner waiting for seconds.
static void turns(uint64_t ns, uint64_t flags) {
  struct scheduling wanted = {.size = sizeof wanted, .flags = flags, .nice = getpriority(PRIO_PROCESS, 0), .turn = ns};
  syscall(SYS_sched_setattr, 0, &wanted, 0);
}

// For the runner alone; 0 is the kernel's own measure.
void hasten(int on) { turns(on ? SHORT_TURN_NS : 0, RESET_ON_FORK); }

static void limit(int what, uint64_t value) {
  struct rlimit both = {.rlim_cur = value, .rlim_max = value};
  setrlimit(what, &both);
}

// What the engine's own system-call filter lets through, the runner needing it, or may let through, and no command needs:
// the length of turns decides who comes first; io_uring does its work past any filter.
static void close_calls(void) {
  struct {
    uint16_t code;
    uint8_t yes, no;
    uint32_t value;
  } steps[] = {
      {0x20, 0, 0, 0},           // load the call's number
      {0x54, 0, 0, 0xbfffffff},  // without the mark of x32
      {0x15, 2, 0, SYS_sched_setattr},
      {0x35, 0, 2, 425},         // below io_uring_setup: allow
      {0x25, 1, 0, 427},         // above io_uring_register: allow
      {0x06, 0, 0, 0x00050000 | ENOSYS},
      {0x06, 0, 0, 0x7fff0000},
  };
  struct {
    uint16_t size;
    void *steps;
  } program = {sizeof steps / sizeof *steps, steps};
  if (prctl(PR_SET_SECCOMP, 2, &program) != 0) _exit(74);
}

// What holds for everything that is started here, the nursery and what it forks included.
void bounds(void) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, settings.file_bytes);
  limit(RLIMIT_NOFILE, 1024);
  limit(RLIMIT_MSGQUEUE, 0);  // counted per uid over the whole host
  limit(RLIMIT_SIGPENDING, 4096);
  umask(022);
  for (int number = 1; number < 65; number++) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

void filter_for_good(void) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(74);
  close_calls();
}

void user_for_good(void) {
  int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0 || write(score, "1000", 4) != 4) _exit(74);
  close(score);
  bounds();
  if (setresgid(settings.gid, settings.gid, settings.gid) != 0) _exit(74);
  if (setresuid(settings.uid, settings.uid, settings.uid) != 0) _exit(74);
  uint32_t header[2] = {0x20080522, 0}, empty[6] = {0};  // capability version 3, this process; three sets of 64 bits
  if (syscall(SYS_capset, header, empty) != 0) _exit(74);
  filter_for_good();
  uid_t real, effective, saved;
  if (getresuid(&real, &effective, &saved) != 0 || real != settings.uid || effective != settings.uid || saved != settings.uid)
    _exit(74);
}

int others(void) {
  DIR *folder = opendir("/proc");
  if (folder == NULL) fatal("cannot read /proc");
  struct dirent *entry;
  int count = 0;
  while ((entry = readdir(folder)) != NULL)
    if (isdigit((unsigned char)entry->d_name[0])) {
      pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
      if (pid != 1 && pid != nursery) count++;
    }
  closedir(folder);
  return count;
}

// Without a nursery the end is told by ECHILD: all orphans are ours. With one there is always a child, and it may have
// forked one that is still on its way to an untrusted uid, so the list of processes tells.
int kill_all(void) {
  uint64_t end = now_us() + 10000000;
  for (;;) {
    for (enum place place = WORK; place <= JUDGE; place++) {
      become(place);
      kill(-1, SIGKILL);
      become_root();
    }
    for (;;) {
      int status;
      pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid < 0 && errno == ECHILD) return 0;
      if (pid <= 0) break;
      reaped(pid, status);
    }
    if (nursery != 0 && others() == 0) return 0;
    if (now_us() > end) return -1;
    struct signalfd_siginfo drop[16];
    struct pollfd wait = {.fd = child_signals, .events = POLLIN};
    poll(&wait, 1, nursery != 0 ? 1 : 10);
    while (read(child_signals, drop, sizeof drop) > 0) {}
  }
}

// The prepared interpreter: a Python of the image's that runs nothing but our own harness in /farm, as uid 0 with the two
// capabilities that it needs to give its children away. It forks the judge and the candidate of a grade; each drops to
// its uid before anything of theirs is read, and each becomes our child, whose end we see (infra/harness).
#include "box.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t nursery;
static int control = -1, complaint = -1, ready;
static uint8_t *asked;  // the words that it was asked for by, as they came
static size_t asked_size;

enum { START_MS = 15000, ANSWER_MS = 10000, MAX_TASK = 3 << 20 };

static void forget(void) {
  nursery = 0;
  ready = 0;
  shut(&control);
  free(asked);
  asked = NULL;
}

void nursery_died(pid_t pid) {
  if (pid == nursery) forget();
}

void nursery_end(void) {
  if (nursery == 0) return;
  kill(-1, SIGKILL);  // with whatever it forked that has no uid of its own yet: all that is root but us
  while (waitpid(nursery, NULL, 0) < 0 && errno == EINTR) {}
  forget();
  shut(&complaint);
}

// Whether untrusted code could have put it there: in one of the writable folders, or found through a relative name.
static int writable(const char *path) {
  static const char *const folders[] = {"/work", "/judge", "/tmp", "/dev", "/proc", "/sys"};
  if (path[0] != '/') return 1;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    size_t length = strlen(folders[i]);
    if (strncmp(path, folders[i], length) == 0 && (path[length] == 0 || path[length] == '/')) return 1;
  }
  return 0;
}

static int usable(const char *path) {
  char real[PATH_MAX];
  if (writable(path)) return EACCES;
  if (realpath(path, real) == NULL) return errno;
  return writable(real) ? EACCES : access(real, X_OK) != 0 ? errno : 0;
}

// The file that `name` means on the PATH of `env`, or errno.
static int find(const char *name, char **env, char *path) {
  if (strchr(name, '/') != NULL) {
    if (strlen(name) >= PATH_MAX) return ENAMETOOLONG;
    strcpy(path, name);
    return usable(path);
  }
  const char *list = "";
  for (; *env != NULL; env++)
    if (strncmp(*env, "PATH=", 5) == 0) list = *env + 5;
  int error = ENOENT;
  while (*list != 0) {
    size_t length = strcspn(list, ":");
    if (snprintf(path, PATH_MAX, "%.*s/%s", (int)length, list, name) < PATH_MAX) {
      int one = length == 0 ? EACCES : usable(path);
      if (one == 0) return 0;
      if (one == EACCES && access(path, F_OK) == 0) error = one;
    }
    list += length + (list[length] == ':');
  }
  return error;
}

static void become_nursery(const char *path, char **argv, char **env, int words, int socket, int status) {
  setsid();
  int moved[4] = {open("/dev/null", O_RDONLY | O_CLOEXEC), fcntl(words, F_DUPFD, 20), fcntl(socket, F_DUPFD, 20), fcntl(status, F_DUPFD, 20)};
  if (dup2(moved[0], 0) < 0 || dup2(moved[1], 1) < 0 || dup2(moved[1], 2) < 0 || dup2(moved[2], 3) < 0) _exit(74);
  if (dup3(moved[3], 4, O_CLOEXEC) < 0) _exit(74);
  close_from(5);
  bounds();
  filter_for_good();
  if (chdir("/") == 0) execve(path, argv, env);
  int error = errno;
  if (write(4, &error, sizeof error) < 0) {}
  _exit(127);
}

// A nursery by these words (`from` to `end` of a frame) is there or on its way, or errno says why it cannot be.
static int start(char **argv, char **env, const uint8_t *from, const uint8_t *end) {
  if (argv[0] == NULL || argv[0][0] == 0) return EINVAL;
  if (nursery != 0 && waitpid(nursery, NULL, WNOHANG) == nursery) forget();
  // one that was prepared otherwise would not mean the same
  if (nursery != 0 && asked_size == (size_t)(end - from) && memcmp(asked, from, asked_size) == 0) return 0;
  nursery_end();
  shut(&complaint);
  char path[PATH_MAX];
  int error = find(argv[0], env, path);
  if (error != 0) return error;
  int sockets[2] = {-1, -1}, words[2] = {-1, -1}, status[2] = {-1, -1};
  pid_t pid = -1;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0 || pipe2(words, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(status, O_CLOEXEC) != 0)
    error = errno;
  else if ((pid = fork()) < 0) error = errno;
  else if (pid == 0) become_nursery(path, argv, env, words[1], sockets[1], status[1]);
  shut(&sockets[1]);
  shut(&words[1]);
  shut(&status[1]);
  if (pid > 0) {
    if (read(status[0], &error, sizeof error) != sizeof error) error = 0;
    nursery = pid;
    control = sockets[0];
    complaint = words[0];
    asked_size = (size_t)(end - from);
    asked = malloc(asked_size + 1);
    fcntl(control, F_SETFL, O_NONBLOCK);
    if (asked == NULL) fatal("no memory for the interpreter's name");
    memcpy(asked, from, asked_size);
    if (error != 0) nursery_end();
  } else {
    shut(&sockets[0]);
    shut(&words[0]);
  }
  shut(&status[0]);
  return error;
}

// Waits until the control socket can be used as `events` say. errno; ECANCELED: the driver wants it ended.
static int await(short events, uint64_t end) {
  while (nursery != 0) {
    uint64_t now = now_us();
    if (now >= end) return ETIMEDOUT;
    struct pollfd fds[3] = {{.fd = 0, .events = POLLIN}, {.fd = child_signals, .events = POLLIN}, {.fd = control, .events = events}};
    uint64_t wait = (end - now) / 1000 + 1;
    send_urgent();
    if (poll(fds, 3, (int)(wait > 1000 ? 1000 : wait)) < 0) continue;
    if (fds[0].revents && serve_channel()) return ECANCELED;
    if (fds[2].revents) return 0;
    // only the nursery's own end is of interest here: a judge's status has to wait for its name
    if (fds[1].revents) {
      struct signalfd_siginfo drop[16];
      while (read(child_signals, drop, sizeof drop) > 0) {}
      if (waitpid(nursery, NULL, WNOHANG) == nursery) forget();
    }
  }
  return EPIPE;
}

static int receive(uint8_t *to, size_t size, uint64_t end) {
  size_t have = 0;
  while (have < size) {
    int error = await(POLLIN, end);
    if (error != 0) return error;
    ssize_t got = recv(control, to + have, size - have, MSG_DONTWAIT);
    if (got == 0) return EPIPE;
    if (got < 0 && errno != EAGAIN && errno != EINTR) return errno;
    if (got > 0) have += (size_t)got;
  }
  return 0;
}

static int hand_over(const uint8_t *task, uint32_t size, int stay, const int *fds, uint64_t end) {
  uint8_t head[4];
  put_u32(head, size | (uint32_t)stay << 31);
  for (size_t done = 0; done < 4 + (size_t)size;) {
    int error = await(POLLOUT, end);
    if (error != 0) return error;
    struct iovec parts[2] = {{.iov_base = head + (done < 4 ? done : 4), .iov_len = done < 4 ? 4 - done : 0},
                             {.iov_base = (void *)(task + (done < 4 ? 0 : done - 4)), .iov_len = done < 4 ? size : size + 4 - done}};
    union {
      struct cmsghdr align;
      char bytes[CMSG_SPACE(4 * sizeof(int))];
    } rights = {.bytes = {0}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (done == 0) {
      message.msg_control = rights.bytes;
      message.msg_controllen = sizeof rights.bytes;
      struct cmsghdr *one = CMSG_FIRSTHDR(&message);
      one->cmsg_level = SOL_SOCKET;
      one->cmsg_type = SCM_RIGHTS;
      one->cmsg_len = CMSG_LEN(4 * sizeof(int));
      memcpy(CMSG_DATA(one), fds, 4 * sizeof(int));
    }
    ssize_t sent = sendmsg(control, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return errno;
    if (sent > 0) done += (size_t)sent;
  }
  return 0;
}

static int get_ready(void) {
  uint8_t word;
  if (ready) return 0;
  int error = receive(&word, 1, now_us() + START_MS * 1000ULL);
  if (error == 0 && word != 'R') error = EPROTO;
  ready = error == 0;
  return error;
}

// What it said before it ended, for the reason of a start that failed.
static void pass_on_complaint(uint32_t cap) {
  static uint8_t words[2048];
  ssize_t size = complaint < 0 ? 0 : read(complaint, words, cap < sizeof words ? cap : sizeof words);
  if (size > 0) send_frame('e', NULL, 0, words, (uint32_t)size);
}

// body: list argv, list environment. No answer: a grade says what is wrong.
void prepare_nursery(const struct frame *frame) {
  const uint8_t *at = frame->body, *end = frame->body + frame->size;
  char **argv = strings(&at, end), **env = strings(&at, end);
  start(argv, env, frame->body, at);
  free_strings(argv);
  free_strings(env);
}

// Why a grade does not begin: the interpreter is the image's and nothing else runs in the box, so want of room, or of time,
// is the machine's.
static enum cause cause_of(int error) {
  switch (error) {
    case ECANCELED: return ABORTED;
    case EAGAIN:
    case ENOMEM:
    case ENFILE:
    case EMFILE:
    case ENOBUFS:
    case ETIMEDOUT: return NO_ROOM;
    default: return EXITED;
  }
}

// body: u32 timeout in ms, u32 bytes kept of each stream, u8 the nursery stays, list argv, list environment, the task for it
void run_grade(const struct frame *frame) {
  if (frame->size < 17) fatal("a broken grade frame");
  struct job job = {.timeout_ms = get_u32(frame->body), .cap = get_u32(frame->body + 4), .graded = 1, .keep = frame->body[8]};
  const uint8_t *at = frame->body + 9, *end = frame->body + frame->size;
  char **argv = strings(&at, end), **env = strings(&at, end);
  // the frame is ours until the next one is taken, and waiting for the nursery takes pings
  uint32_t words = (uint32_t)(at - frame->body - 9), size = (uint32_t)(end - at);
  uint8_t *asking = malloc(words + size + 1), *task = asking + words, pids[8];
  if (asking == NULL || size > MAX_TASK) fatal("a task for the nursery is too large");
  memcpy(asking, frame->body + 9, words + size);
  int error = job_pipes(&job), kept = 0;
  int fds[4] = {job.in[0], job.out[OUT][1], job.out[ERR][1], job.out[RESULT][1]};
  if (error == 0) do {
      error = start(argv, env, asking, task);
      kept = ready;
      if (error == 0) error = get_ready();
      job.start = now_us();
      uint64_t answer_by = job.start + ANSWER_MS * 1000ULL;
      if (error == 0) error = hand_over(task, size, job.keep != 0, fds, answer_by);
      if (error == 0) error = receive(pids, sizeof pids, answer_by);
      // what has befallen one that had served others is none of this grade's doing: a new one takes it
      if (error != 0 && error != ECANCELED && kept) nursery_end();
    } while (error != 0 && error != ECANCELED && kept && kill_all() == 0);
  int refused = 0;
  if (error == 0) {
    job.pid = (pid_t)get_u32(pids);
    job.candidate = (pid_t)get_u32(pids + 4);
    refused = job.pid == 0;
    job.turned = !refused && job.pid == nursery;
    if (job.turned) {
      forget();
      shut(&complaint);
    }
    if (refused) {
      error = (int)get_u32(pids + 4);
      if (error <= 0) error = EPROTO;
    }
  }
  if (error != 0) {
    pass_on_complaint(job.cap);
    if (!refused || !job.keep) nursery_end();
  }
  job_run(&job, error == ECANCELED ? 0 : error, cause_of(error));
  free(asking);
  free_strings(argv);
  free_strings(env);
}

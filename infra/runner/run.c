// One command, or one grade: started under the box's uid (a grade by the nursery), its output read and cut while it
// streams, ended at its deadline. When it is over, by itself or not, everything that it left is killed before what remains
// in the pipes is read: nobody who holds an end of them open can delay the answer.
#include "box.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// What has run so long may be a crowd that keeps every processor of the box busy until its deadline.
enum { LONG_US = 250000 };

static uint8_t *input;
static size_t input_size;

// The candidate of the grade that runs, and how it ended.
static pid_t candidate;
static int candidate_status, killing;

static const uint8_t types[OUTPUTS] = {'o', 'e', 'r'};
static uint64_t seen[OUTPUTS];

void stdin_chunk(const struct frame *frame) {
  if (input_size + frame->size > MAX_STDIN) fatal("the command's stdin is too large");
  uint8_t *grown = realloc(input, input_size + frame->size + 1);
  if (grown == NULL) fatal("no memory for the command's stdin");
  input = grown;
  memcpy(input + input_size, frame->body, frame->size);
  input_size += frame->size;
}

static void drop_input(void) {
  free(input);
  input = NULL;
  input_size = 0;
}

void shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

void close_from(int first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, (unsigned)first, ~0U, 0U) == 0) return;
#endif
  for (int fd = first; fd < 4096; fd++) close(fd);
}

// 1: something was read, 0: nothing there, -1: closed
static int take(struct job *job, int which) {
  static uint8_t chunk[CHUNK];
  int *fd = &job->out[which][0];
  if (*fd < 0) return -1;
  ssize_t size = read(*fd, chunk, sizeof chunk);
  if (size < 0) return errno == EINTR ? 1 : 0;
  if (size == 0) {
    shut(fd);
    return -1;
  }
  uint64_t cap = which == RESULT ? MAX_RESULT : job->cap;
  uint64_t room = seen[which] < cap ? cap - seen[which] : 0;
  if (room > 0) send_frame(types[which], NULL, 0, chunk, (uint32_t)((uint64_t)size < room ? (uint64_t)size : room));
  seen[which] += (uint64_t)size;
  return 1;
}

static void child(char **argv, char **env, int in, int out, int err, int status) {
  setsid();
  // the lowest numbers may be in use by what is being moved, so all go up first
  int moved[4] = {fcntl(in, F_DUPFD, 20), fcntl(out, F_DUPFD, 20), fcntl(err, F_DUPFD, 20), fcntl(status, F_DUPFD, 20)};
  for (int fd = 0; fd < 3; fd++)
    if (dup2(moved[fd], fd) < 0) _exit(74);
  if (dup3(moved[3], 3, O_CLOEXEC) < 0) _exit(74);
  close_from(4);
  user_for_good();
  extern char **environ;
  environ = env;
  if (chdir("/work") == 0) execvp(argv[0], argv);
  int error = errno;
  if (write(3, &error, sizeof error) < 0) {}
  _exit(127);
}

// the strings of the frame as a NULL-ended list over one copy
char **strings(const uint8_t **at, const uint8_t *end) {
  if (end - *at < 4) fatal("a broken run frame");
  uint32_t count = get_u32(*at);
  *at += 4;
  if (count > MAX_FRAME / 4) fatal("a broken run frame");
  char **list = calloc(count + 1, sizeof *list);
  if (list == NULL) fatal("no memory for a command");
  for (uint32_t i = 0; i < count; i++) {
    if (end - *at < 4 || get_u32(*at) > (uint32_t)(end - *at - 4)) fatal("a broken run frame");
    uint32_t size = get_u32(*at);
    list[i] = strndup((const char *)*at + 4, size);
    if (list[i] == NULL) fatal("no memory for a command");
    *at += 4 + size;
  }
  return list;
}

void free_strings(char **list) {
  for (char **one = list; *one != NULL; one++) free(*one);
  free(list);
}

// Whether a folder of the box is full, of bytes or of files: what was refused to the command nobody else can tell.
static int disk_full(void) {
  static const char *const folders[] = {"/work", "/tmp", "/dev/shm"};
  for (int i = 0; i < 3; i++) {
    struct statvfs use;
    if (statvfs(folders[i], &use) == 0 && use.f_blocks > 0 && (use.f_bavail == 0 || (use.f_files > 0 && use.f_favail == 0))) return 1;
  }
  return 0;
}

static void answer(enum cause cause, int value, uint64_t wall, int oom, int pids, int candidate_end) {
  uint8_t body[44];
  body[0] = cause;
  put_u32(body + 1, (uint32_t)value);
  put_u64(body + 5, seen[OUT]);
  put_u64(body + 13, seen[ERR]);
  put_u64(body + 21, wall);
  body[29] = (uint8_t)oom;
  body[30] = (uint8_t)pids;
  put_u64(body + 31, seen[RESULT]);
  put_u32(body + 39, (uint32_t)candidate_end);
  body[43] = (uint8_t)(disk_full() || (cause == SIGNALLED && value == SIGXFSZ));
  send_frame('z', body, 44, NULL, 0);
}

// Serves the channel while a command runs. 1: the driver wants it ended.
int serve_channel(void) {
  struct frame frame;
  if (!wire_fill()) _exit(0);
  int abort = 0;
  while (wire_next(&frame)) {
    if (frame.type == 'P') send_frame('p', frame.body, frame.size < 64 ? frame.size : 64, NULL, 0);
    else if (frame.type == 'K') abort = 1;
    else if (frame.type == 'Q') _exit(0);
    else fatal("a frame that does not belong into a running command");
  }
  return abort;
}

void reaped(pid_t pid, int status) {
  nursery_died(pid);
  // one that was dying of something else when we killed it keeps that as its end
  if (pid != candidate || (killing && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) return;
  candidate_status = status | 1 << 16;
}

static void feed(struct job *job, size_t *written) {
  ssize_t size = write(job->in[1], input + *written, input_size - *written);
  if (size > 0) *written += (size_t)size;
  if ((size < 0 && errno != EAGAIN && errno != EINTR) || *written == input_size) shut(&job->in[1]);
}

static void attend(struct job *job) {
  uint64_t end = job->start + (uint64_t)job->timeout_ms * 1000;
  uint64_t oom = counter(OOM_KILLS), pids = counter(PIDS_REFUSED);
  size_t written = 0;
  int status = 0, over = 0, hasty = 0;
  enum cause cause = EXITED;
  candidate = job->candidate;
  candidate_status = killing = 0;
  while (!over) {
    uint64_t now = now_us();
    if (now >= end) {
      cause = TIMED_OUT;
      break;
    }
    if (!hasty && now >= job->start + LONG_US) hasten(hasty = 1);
    struct pollfd fds[6] = {{.fd = 0, .events = POLLIN},
                            {.fd = child_signals, .events = POLLIN},
                            {.fd = job->in[1], .events = POLLOUT},
                            {.fd = job->out[OUT][0], .events = POLLIN},
                            {.fd = job->out[ERR][0], .events = POLLIN},
                            {.fd = job->out[RESULT][0], .events = POLLIN}};
    uint64_t wait = (end - now) / 1000 + 1, most = hasty ? 1000 : LONG_US / 1000;
    send_urgent();
    if (poll(fds, 6, (int)(wait > most ? most : wait)) < 0) continue;
    if (fds[0].revents && serve_channel()) {
      cause = ABORTED;
      break;
    }
    if (fds[2].revents) feed(job, &written);
    for (int which = 0; which < OUTPUTS; which++)
      if (fds[3 + which].revents) take(job, which);
    if (fds[1].revents) {
      struct signalfd_siginfo drop[16];
      while (read(child_signals, drop, sizeof drop) > 0) {}
      int one;
      pid_t ended;
      while ((ended = waitpid(-1, &one, WNOHANG)) > 0) {
        reaped(ended, one);
        if (ended != job->pid) continue;
        status = one;
        over = 1;
      }
    }
  }
  uint64_t wall = now_us() - job->start;
  shut(&job->in[1]);
  int lost = job->graded && nursery == 0 && !job->turned;
  if (job->graded && !job->keep) nursery_end();
  killing = 1;
  if (kill_all() != 0) fatal("a process survived its kill");
  if (lost || (job->graded && job->keep && nursery == 0 && !job->turned)) fatal("the prepared interpreter died under a grade");
  for (int which = 0; which < OUTPUTS; which++) {
    while (take(job, which) > 0) {}
    shut(&job->out[which][0]);
  }
  int value = 0;
  if (cause == EXITED && WIFSIGNALED(status)) {
    cause = SIGNALLED;
    value = WTERMSIG(status);
  } else if (cause == EXITED) value = WEXITSTATUS(status);
  answer(cause, value, wall, counter(OOM_KILLS) > oom, counter(PIDS_REFUSED) > pids, candidate_status);
  candidate = 0;
  if (hasty) hasten(0);
}

int job_pipes(struct job *job) {
  job->in[0] = job->in[1] = -1;
  for (int which = 0; which < OUTPUTS; which++) job->out[which][0] = job->out[which][1] = -1;
  for (int which = 0; which < (job->graded ? OUTPUTS : RESULT); which++)
    if (pipe2(job->out[which], O_CLOEXEC) != 0 || fcntl(job->out[which][0], F_SETFL, O_NONBLOCK) != 0) return errno;
  if (input_size == 0) job->in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
  else if (pipe2(job->in, O_CLOEXEC) != 0 || fcntl(job->in[1], F_SETFL, O_NONBLOCK) != 0) return errno;
  return job->in[0] < 0 ? errno : 0;
}

void job_run(struct job *job, int error, enum cause cause) {
  memset(seen, 0, sizeof seen);
  shut(&job->in[0]);
  for (int which = 0; which < OUTPUTS; which++) shut(&job->out[which][1]);
  if (error == 0 && cause == EXITED) attend(job);
  else {
    if (kill_all() != 0) fatal("a process survived its kill");
    answer(cause == EXITED ? NOT_STARTED : cause, error, 0, 0, 0, 0);
  }
  shut(&job->in[1]);
  for (int which = 0; which < OUTPUTS; which++) shut(&job->out[which][0]);
  drop_input();
}

void run_command(const struct frame *frame) {
  if (frame->size < 16) fatal("a broken run frame");
  struct job job = {.timeout_ms = get_u32(frame->body), .cap = get_u32(frame->body + 4)};
  const uint8_t *at = frame->body + 8, *end = frame->body + frame->size;
  char **argv = strings(&at, end), **env = strings(&at, end);
  int status[2] = {-1, -1}, error = job_pipes(&job);
  if (error == 0 && pipe2(status, O_CLOEXEC) != 0) error = errno;
  job.start = now_us();
  // nothing else runs in the box: what is refused here is never the command's doing
  if (error == 0 && argv[0] != NULL && (job.pid = fork()) < 0) error = errno;
  enum cause cause = error == 0 ? EXITED : NO_ROOM;
  if (error == 0 && argv[0] == NULL) error = EINVAL;
  if (error == 0 && job.pid == 0) child(argv, env, job.in[0], job.out[OUT][1], job.out[ERR][1], status[1]);
  shut(&status[1]);
  if (error == 0) {
    ssize_t size;
    do size = read(status[0], &error, sizeof error);
    while (size < 0 && errno == EINTR);
    if (size != sizeof error) error = 0;
  }
  shut(&status[0]);
  job_run(&job, error, cause);
  free_strings(argv);
  free_strings(env);
}

// One command: started under the box's uid, its output read and cut while it streams, ended at its deadline. When it is
// over, by itself or not, everything that it left is killed before what remains in the pipes is read: nobody who
// holds an end of them open can delay the answer.
#include "box.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum cause { EXITED, SIGNALLED, TIMED_OUT, NOT_STARTED, ABORTED };

static uint8_t *input;
static size_t input_size;

struct output {
  int fd;
  uint8_t type;
  uint64_t seen;
};

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

// 1: something was read, 0: nothing there, -1: closed
static int take(struct output *out, uint32_t cap) {
  static uint8_t chunk[CHUNK];
  if (out->fd < 0) return -1;
  ssize_t size = read(out->fd, chunk, sizeof chunk);
  if (size < 0) return errno == EINTR ? 1 : 0;
  if (size == 0) {
    close(out->fd);
    out->fd = -1;
    return -1;
  }
  uint64_t room = out->seen < cap ? cap - out->seen : 0;
  if (room > 0) send_frame(out->type, NULL, 0, chunk, (uint32_t)((uint64_t)size < room ? (uint64_t)size : room));
  out->seen += (uint64_t)size;
  return 1;
}

static void child(char **argv, char **env, int in, int out, int err, int status) {
  setsid();
  // the lowest numbers may be in use by what is being moved, so all go up first
  int moved[4] = {fcntl(in, F_DUPFD, 20), fcntl(out, F_DUPFD, 20), fcntl(err, F_DUPFD, 20), fcntl(status, F_DUPFD, 20)};
  for (int fd = 0; fd < 3; fd++)
    if (dup2(moved[fd], fd) < 0) _exit(74);
  if (dup3(moved[3], 3, O_CLOEXEC) < 0) _exit(74);
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 4U, ~0U, 0U) != 0)
#endif
    for (int fd = 4; fd < 4096; fd++) close(fd);
  user_for_good();
  extern char **environ;
  environ = env;
  if (chdir("/work") == 0) execvp(argv[0], argv);
  int error = errno;
  if (write(3, &error, sizeof error) < 0) {}
  _exit(127);
}

// the strings of the frame as a NULL-ended list over one copy
static char **strings(const uint8_t **at, const uint8_t *end) {
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

static void free_strings(char **list) {
  for (char **one = list; *one != NULL; one++) free(*one);
  free(list);
}

static void answer(enum cause cause, int value, const struct output *outs, uint64_t wall, int oom, int pids) {
  uint8_t body[32];
  body[0] = cause;
  put_u32(body + 1, (uint32_t)value);
  put_u64(body + 5, outs[0].seen);
  put_u64(body + 13, outs[1].seen);
  put_u64(body + 21, wall);
  body[29] = (uint8_t)oom;
  body[30] = (uint8_t)pids;
  send_frame('z', body, 31, NULL, 0);
}

// Serves the channel while a command runs. 1: the driver wants it ended.
static int serve_channel(void) {
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

static void attend(pid_t pid, struct output *outs, int in, uint32_t timeout_ms, uint32_t cap) {
  uint64_t start = now_us(), end = start + (uint64_t)timeout_ms * 1000;
  uint64_t oom = counter(OOM_KILLS), pids = counter(PIDS_REFUSED);
  size_t written = 0;
  int status = 0, over = 0;
  enum cause cause = EXITED;
  while (!over) {
    uint64_t now = now_us();
    if (now >= end) {
      cause = TIMED_OUT;
      break;
    }
    struct pollfd fds[5] = {{.fd = 0, .events = POLLIN}, {.fd = child_signals, .events = POLLIN}, {.fd = outs[0].fd, .events = POLLIN},
                            {.fd = outs[1].fd, .events = POLLIN}, {.fd = in, .events = POLLOUT}};
    if (poll(fds, 5, (int)((end - now) / 1000 + 1 > 1000 ? 1000 : (end - now) / 1000 + 1)) < 0) continue;
    if (fds[0].revents && serve_channel()) {
      cause = ABORTED;
      break;
    }
    if (fds[2].revents) take(&outs[0], cap);
    if (fds[3].revents) take(&outs[1], cap);
    if (fds[4].revents) {
      ssize_t size = write(in, input + written, input_size - written);
      if (size > 0) written += (size_t)size;
      if ((size < 0 && errno != EAGAIN && errno != EINTR) || written == input_size) {
        close(in);
        in = -1;
      }
    }
    if (fds[1].revents) {
      struct signalfd_siginfo drop[16];
      while (read(child_signals, drop, sizeof drop) > 0) {}
      int one;
      pid_t ended;
      while ((ended = waitpid(-1, &one, WNOHANG)) > 0)
        if (ended == pid) {
          status = one;
          over = 1;
        }
    }
  }
  uint64_t wall = now_us() - start;
  if (in >= 0) close(in);
  if (kill_all(0, NULL) != 0) fatal("a process survived its kill");
  for (int i = 0; i < 2; i++) {
    while (take(&outs[i], cap) > 0) {}
    if (outs[i].fd >= 0) close(outs[i].fd);
  }
  int value = 0;
  if (cause == EXITED && WIFSIGNALED(status)) {
    cause = SIGNALLED;
    value = WTERMSIG(status);
  } else if (cause == EXITED) value = WEXITSTATUS(status);
  answer(cause, value, outs, wall, counter(OOM_KILLS) > oom, counter(PIDS_REFUSED) > pids);
}

static void close_pair(int *pair) {
  for (int i = 0; i < 2; i++)
    if (pair[i] >= 0) close(pair[i]);
}

void run_command(const struct frame *frame) {
  if (frame->size < 16) fatal("a broken run frame");
  uint32_t timeout_ms = get_u32(frame->body), cap = get_u32(frame->body + 4);
  const uint8_t *at = frame->body + 8, *end = frame->body + frame->size;
  char **argv = strings(&at, end), **env = strings(&at, end);
  struct output outs[2] = {{.fd = -1, .type = 'o'}, {.fd = -1, .type = 'e'}};
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, status[2] = {-1, -1}, error = 0;
  pid_t pid = -1;
  if (argv[0] == NULL) error = EINVAL;
  else if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 || pipe2(status, O_CLOEXEC) != 0) error = errno;
  else if (input_size > 0 ? pipe2(in, O_CLOEXEC) != 0 : (in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) error = errno;
  else if ((pid = fork()) < 0) error = errno;
  else if (pid == 0) child(argv, env, in[0], out[1], err[1], status[1]);
  int *ours[4] = {&in[0], &out[1], &err[1], &status[1]};
  for (int i = 0; i < 4; i++)
    if (*ours[i] >= 0) {
      close(*ours[i]);
      *ours[i] = -1;
    }
  if (pid > 0) {
    ssize_t size;
    do size = read(status[0], &error, sizeof error);
    while (size < 0 && errno == EINTR);
    if (size != sizeof error) error = 0;
  }
  if (pid > 0 && error == 0) {
    for (int i = 0; i < 2; i++) {
      outs[i].fd = i == 0 ? out[0] : err[0];
      fcntl(outs[i].fd, F_SETFL, O_NONBLOCK);
    }
    if (in[1] >= 0) fcntl(in[1], F_SETFL, O_NONBLOCK);
    attend(pid, outs, in[1], timeout_ms, cap);
    in[1] = out[0] = err[0] = -1;  // attend has closed them
  } else {
    if (kill_all(0, NULL) != 0) fatal("a process survived its kill");
    answer(NOT_STARTED, error, outs, 0, 0, 0);
  }
  close_pair(in);
  close_pair(out);
  close_pair(err);
  close_pair(status);
  free_strings(argv);
  free_strings(env);
  drop_input();
}

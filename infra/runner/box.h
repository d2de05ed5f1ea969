// The runner's parts and the protocol that it speaks (README.md has the frames).
// One process, PID 1 of the box, uid 0 with CAP_SETUID and CAP_SETGID alone; it never does for the untrusted
// uid what that uid could not do itself: files are touched, and processes killed, under that uid.
#ifndef BOX_H
#define BOX_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { MAX_FRAME = 4 << 20, MAX_STDIN = 16 << 20, CHUNK = 64 << 10, MAX_DEPTH = 64 };

// The kernel's sched_attr (sched_setattr(2)), which musl has no name for; `turn` is its sched_runtime, in ns.
struct scheduling {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t turn, deadline, period;
};

struct frame {
  uint8_t type;
  uint8_t *body;
  uint32_t size;
};

// What the driver says in its first frame.
struct settings {
  uid_t uid;
  gid_t gid;
  uid_t judge_uid;       // who judges a grade made apart: never the uid of the judged
  gid_t judge_gid;
  uint64_t file_bytes;   // RLIMIT_FSIZE of commands
  uint64_t lifetime_ms;  // of the box, from now on
  uint64_t silence_ms;   // no frame for so long: the driver is gone
};
extern struct settings settings;

// wire.c: frames, reading of bodies, the watchdog
int wire_fill(void);                      // reads what is there; 0 when the channel is closed
int wire_next(struct frame *frame);       // 1: a whole frame (valid until the next call)
void wire_wait(struct frame *frame);      // blocks until there is one; a closed channel ends the box
void send_frame(uint8_t type, const void *head, uint32_t head_size, const void *tail, uint32_t tail_size);
void send_waiting(void);                  // before a wait for the driver
void send_urgent(void);                   // before any other
void send_u32(uint8_t type, uint32_t a, uint32_t b);
void fatal(const char *what);             // tells the driver why, and ends the box
uint32_t get_u32(const uint8_t *from);
uint64_t get_u64(const uint8_t *from);
void put_u32(uint8_t *to, uint32_t value);
void put_u64(uint8_t *to, uint64_t value);
uint64_t now_us(void);
void watchdog_start(void);
void watchdog_feed(void);

// user.c: the border between the runner and the untrusted uids
enum place { WORK = 0, JUDGE = 1, FARM = 2 };  // of the candidate, of the judge, of the runner itself
extern const char *const place_folder[3];
void become(enum place place);            // the uid that a place belongs to; FARM: nobody else
void become_root(void);
void bounds(void);                        // in a child: limits, signals, mask
void user_for_good(void);                 // in a child, before exec
void filter_for_good(void);
void hasten(int on);                      // the runner comes before all that runs in its box
int kill_all(void);                       // kills and reaps all of both uids; -1: something survived
int others(void);                         // processes beside us and the nursery
extern int child_signals;                 // signalfd of SIGCHLD
void user_init(void);
uint64_t counter(int which);              // the cgroup's own counts
enum { OOM_KILLS = 0, PIDS_REFUSED = 1 };

// run.c: a command, or a grade that the nursery has forked, from its start to its answer
enum cause { EXITED, SIGNALLED, TIMED_OUT, NOT_STARTED, ABORTED, NO_ROOM };  // NO_ROOM: the machine has no process or pipe for it
enum { OUT = 0, ERR = 1, RESULT = 2, OUTPUTS = 3, MAX_RESULT = 64 << 10 };
struct job {
  pid_t pid;        // its status is the answer
  pid_t candidate;  // of a grade made apart, else 0
  uint64_t start;
  uint32_t timeout_ms, cap;
  int graded, keep;           // forked by the nursery; the nursery stays
  int turned;                 // the nursery itself has become the judge
  int in[2], out[OUTPUTS][2];  // pipes
};
void run_command(const struct frame *frame);
void stdin_chunk(const struct frame *frame);
int job_pipes(struct job *job);           // errno
void job_run(struct job *job, int error, enum cause cause);  // attends to it, or says why there is none; answers
void reaped(pid_t pid, int status);       // whoever waited for it
int serve_channel(void);                  // while something runs; 1: the driver wants it ended
char **strings(const uint8_t **at, const uint8_t *end);
void free_strings(char **list);
void shut(int *fd);                       // closes it, if it is open, and forgets it
void close_from(int first);               // every descriptor from this on

// nursery.c: the prepared interpreter
extern pid_t nursery;                     // 0: there is none
void nursery_died(pid_t pid);             // if it was that one
void nursery_end(void);
void prepare_nursery(const struct frame *frame);
void run_grade(const struct frame *frame);

// files.c, reset.c
void write_files(const struct frame *frame);
void list_files(const struct frame *frame);
void fit_folders(void);                   // once, before the first command
void remember_standing(void);             // the same
void reset_box(void);
#endif

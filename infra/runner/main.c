// The runner of a box: says hello, takes its settings, then serves one request after the other until the channel
// closes, the driver falls silent or the box's lifetime is over. Its end is the box's end: it is PID 1.
#include "box.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct settings settings;

static void take_settings(const struct frame *frame) {
  if (frame->type != 'C' || frame->size != 40) fatal("the first frame has to be the settings");
  settings.uid = get_u32(frame->body);
  settings.gid = get_u32(frame->body + 4);
  settings.judge_uid = get_u32(frame->body + 8);
  settings.judge_gid = get_u32(frame->body + 12);
  settings.file_bytes = get_u64(frame->body + 16);
  settings.lifetime_ms = get_u64(frame->body + 24);
  settings.silence_ms = get_u64(frame->body + 32);
  if (settings.uid < 1000 || settings.gid < 1000 || settings.judge_uid < 1000 || settings.judge_gid < 1000)
    fatal("the box's uids have to be ordinary ones");
  if (settings.uid == settings.judge_uid || settings.gid == settings.judge_gid) fatal("the judge has to be another");
}

int main(void) {
  umask(022);
  user_init();
  remember_standing();
  // until the settings are there, a driver that died between start and attach must not leave a box behind
  settings = (struct settings){.lifetime_ms = 60000, .silence_ms = 20000};
  watchdog_start();
  struct frame frame;
  wire_wait(&frame);
  take_settings(&frame);
  watchdog_start();
  fit_folders();
  send_u32('h', 2, (uint32_t)getpid());
  for (;;) {
    wire_wait(&frame);
    switch (frame.type) {
      case 'P': send_frame('p', frame.body, frame.size < 64 ? frame.size : 64, NULL, 0); break;
      case 'I': stdin_chunk(&frame); break;
      case 'R': run_command(&frame); break;
      case 'N': prepare_nursery(&frame); break;
      case 'G': run_grade(&frame); break;
      case 'W': write_files(&frame); break;
      case 'L': list_files(&frame); break;
      case 'X': reset_box(); break;
      case 'K': break;  // came too late: the command is over
      case 'Q': _exit(0);
      default: fatal("an unknown frame");
    }
  }
}

// Files of a place, in and out: under the uid it belongs to, no link followed, nothing recursive, everything bounded.
// No command runs meanwhile, so what was looked at cannot change before it is opened.
#include "box.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST = 1, LAST = 2, MAX_PATH = 4000, MAX_NAMES_BYTES = 8 << 20, MAX_FOUND = 65536 };
enum { OK = 0, ESCAPE = 1, OTHER = 2 };

// Into `part` of `folder`, which is closed; -1 with errno. ELOOP: a link stands in the way.
static int step_into(int folder, const char *part, int create) {
  struct stat stat;
  int next = -1, error = 0;
  if (create && mkdirat(folder, part, 0755) != 0 && errno != EEXIST) error = errno;
  else if (fstatat(folder, part, &stat, AT_SYMLINK_NOFOLLOW) != 0) error = errno;
  else if (S_ISLNK(stat.st_mode)) error = ELOOP;
  else if ((next = openat(folder, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) error = errno;
  close(folder);
  errno = error;
  return next;
}

// The folder that holds the last part of `path`, or -1 with errno.
static int parent_of(enum place place, const char *path, int create, const char **name) {
  int folder = open(place_folder[place], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  const char *slash;
  for (*name = path; folder >= 0 && (slash = strchr(*name, '/')) != NULL; *name = slash + 1) {
    char part[256];
    size_t length = (size_t)(slash - *name);
    if (length == 0 || length > 255) {
      close(folder);
      errno = ENAMETOOLONG;
      return -1;
    }
    memcpy(part, *name, length);
    part[length] = 0;
    folder = step_into(folder, part, create);
  }
  return folder;
}

static int create_file(enum place place, const char *path) {
  const char *name;
  int folder = parent_of(place, path, 1, &name);
  if (folder < 0) return -1;
  struct stat stat;
  int there = fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) == 0;
  // a link, a pipe or a socket gives way to the file; a file keeps its mode
  if (there && !S_ISREG(stat.st_mode) && !S_ISDIR(stat.st_mode)) unlinkat(folder, name, 0);
  int file = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
  if (file < 0 && errno == EACCES && there && unlinkat(folder, name, 0) == 0)
    file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  int error = errno;
  close(folder);
  errno = error;
  return file;
}

// The batch that is being written: one answer for all its files, at its last frame. After a fault the rest is left out.
static struct {
  int file, error;
  uint32_t index, failed;  // files begun so far; the one at fault
  enum place place;
} batch = {.file = -1};

static void write_part(const uint8_t *at, size_t left) {
  while (batch.file >= 0 && batch.error == 0 && left > 0) {
    ssize_t done = write(batch.file, at, left);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      batch.error = done < 0 ? errno : EIO;
      return;
    }
    at += done;
    left -= (size_t)done;
  }
}

static void close_file(void) {
  // bytecode is tied to its source by time: the same in every box
  if (batch.file >= 0 && batch.place == FARM) futimens(batch.file, (struct timespec[2]){{0}, {0}});
  if (batch.file >= 0 && close(batch.file) != 0 && batch.error == 0) batch.error = errno;
  batch.file = -1;
}

// body: u8 flags of the batch, then parts of files: u8 flags, u8 place, u16 length of the path, u32 size, path, bytes.
void write_files(const struct frame *frame) {
  if (frame->size < 1) fatal("a broken write frame");
  const uint8_t *at = frame->body + 1, *end = frame->body + frame->size;
  if (frame->body[0] & FIRST) {
    close_file();
    batch.error = 0;
    batch.index = batch.failed = 0;
  }
  while (at < end) {
    if (end - at < 8) fatal("a broken write frame");
    uint8_t flags = at[0], place = at[1];
    uint32_t length = at[2] | (uint32_t)at[3] << 8, size = get_u32(at + 4);
    if (place > FARM || (size_t)(end - at) - 8 < (size_t)length + size) fatal("a broken write frame");
    become(place);
    if (batch.error == 0 && flags & FIRST) {
      char path[MAX_PATH + 1];
      close_file();
      batch.failed = batch.index;
      batch.place = place;
      if (length == 0 || length > MAX_PATH) batch.error = ENAMETOOLONG;
      else {
        memcpy(path, at + 8, length);
        path[length] = 0;
        batch.file = create_file(place, path);
        if (batch.file < 0) batch.error = errno;
      }
    }
    if (flags & FIRST) batch.index++;
    write_part(at + 8 + length, size);
    if (flags & LAST) close_file();
    become_root();
    at += 8 + (size_t)length + size;
  }
  if (!(frame->body[0] & LAST)) return;
  uint8_t body[12];
  put_u32(body, batch.error == 0 ? OK : batch.error == ELOOP ? ESCAPE : OTHER);
  put_u32(body + 4, (uint32_t)batch.error);
  put_u32(body + 8, batch.failed);
  send_frame('w', body, sizeof body, NULL, 0);
  if (batch.error != 0) send_waiting();  // whoever has sent more behind it may want to end that
}

static char **found;
static size_t found_count, names_bytes;
static int truncated;

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void find_in(DIR *folder, char *path, size_t length, char **next) {
  struct dirent *entry;
  *next = NULL;
  while ((entry = readdir(folder)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    struct stat stat;
    if (fstatat(dirfd(folder), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) != 0) continue;
    size_t more = strlen(entry->d_name);
    if (!S_ISREG(stat.st_mode) && !S_ISDIR(stat.st_mode)) continue;
    if (length + more + 1 > MAX_PATH) {
      truncated = 1;
      continue;
    }
    memcpy(path + length, entry->d_name, more + 1);
    if (S_ISDIR(stat.st_mode)) {
      if ((stat.st_mode & 0700) != 0700) fchmodat(dirfd(folder), entry->d_name, (stat.st_mode & 07777) | 0700, 0);
      *next = path + length;
      return;
    }
    if (found_count == MAX_FOUND || names_bytes + length + more > MAX_NAMES_BYTES || (found[found_count] = strdup(path)) == NULL) {
      truncated = 1;
      continue;
    }
    found_count++;
    names_bytes += length + more;
  }
}

static void find_all(enum place place) {
  char path[MAX_PATH + 256];
  struct {
    DIR *folder;
    size_t length;
  } stack[MAX_DEPTH];
  int depth = 0;
  if (place == WORK) chmod(place_folder[place], 0755);
  stack[0].folder = opendir(place_folder[place]);
  stack[0].length = 0;
  if (stack[0].folder == NULL) return;
  while (depth >= 0) {
    char *name;
    find_in(stack[depth].folder, path, stack[depth].length, &name);
    if (name == NULL) {
      closedir(stack[depth--].folder);
      continue;
    }
    int opened = -1;
    if (depth + 1 == MAX_DEPTH || (opened = openat(dirfd(stack[depth].folder), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
      truncated = 1;
      continue;
    }
    size_t length = stack[depth].length + strlen(name);
    path[length++] = '/';
    stack[++depth].folder = fdopendir(opened);
    stack[depth].length = length;
    if (stack[depth].folder == NULL) {
      close(opened);
      depth--;
      truncated = 1;
    }
  }
}

static int open_file(enum place place, const char *path, struct stat *stat) {
  const char *name;
  int folder = parent_of(place, path, 0, &name), file = -1;
  if (folder < 0) return -1;
  if (fstatat(folder, name, stat, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(stat->st_mode)) {
    int closed = (stat->st_mode & 0400) == 0;
    if (closed) fchmodat(folder, name, (stat->st_mode & 07777) | 0400, 0);
    file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (closed) fchmodat(folder, name, stat->st_mode & 07777, 0);
  }
  close(folder);
  return file;
}

static void send_file(int file, const char *path, uint64_t size) {
  static uint8_t chunk[CHUNK];
  uint8_t head[3 + MAX_PATH];
  size_t length = strlen(path);
  head[0] = FIRST;
  head[1] = (uint8_t)length;
  head[2] = (uint8_t)(length >> 8);
  memcpy(head + 3, path, length);
  for (;;) {
    ssize_t got = size == 0 ? 0 : read(file, chunk, size < CHUNK ? size : CHUNK);
    if (got < 0) got = 0;
    size = got == 0 ? 0 : size - (uint64_t)got;
    if (size == 0) head[0] |= LAST;
    send_frame('f', head, (uint32_t)(3 + length), chunk, (uint32_t)got);
    if (size == 0) return;
    head[0] = 0;
  }
}

// body: u64 bytes, u32 entries, u8 place. Which files are left out where a cap cuts depends on their names alone, not on the disk's order.
void list_files(const struct frame *frame) {
  if (frame->size != 13 || frame->body[12] > FARM) fatal("a broken list frame");
  enum place place = frame->body[12];
  uint64_t bytes = get_u64(frame->body);
  uint32_t entries = get_u32(frame->body + 8), sent = 0;
  found = calloc(MAX_FOUND, sizeof *found);
  if (found == NULL) fatal("no memory for a listing");
  found_count = names_bytes = 0;
  truncated = 0;
  become(place);
  find_all(place);
  qsort(found, found_count, sizeof *found, by_bytes);
  for (size_t i = 0; i < found_count; i++) {
    struct stat stat;
    int file = sent < entries ? open_file(place, found[i], &stat) : -1;
    if (file < 0 || (uint64_t)stat.st_size > bytes) truncated = 1;
    else {
      bytes -= (uint64_t)stat.st_size;
      sent++;
      send_file(file, found[i], (uint64_t)stat.st_size);
    }
    if (file >= 0) close(file);
    free(found[i]);
  }
  become_root();
  free(found);
  send_u32('l', (uint32_t)truncated, sent);
}

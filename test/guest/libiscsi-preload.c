/*
 * Preloaded under iscsi-test-cu, for two mistakes of libiscsi 1.19 over iSER. It logs in a second
 * time with memory that it has freed, or has not filled: memory is zeroed, and never given back,
 * for each test is a process of its own. And it takes an answer that is later than a second for a
 * failure, where over TCP it goes on waiting: so it waits longer.
 */
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ALIGNMENT = 64, CHUNK = 16 << 20, ITS_PATIENCE_MS = 1000, PATIENCE_MS = 60000 };

static char *next;
static size_t left;

void *malloc(size_t size)
{
	size_t whole = ((size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1)) + ALIGNMENT;
	char *start;

	if (whole > left) {
		size_t chunk = whole > CHUNK ? whole : CHUNK;
		void *fresh = mmap(NULL, chunk, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (fresh == MAP_FAILED)
			return NULL;
		next = fresh;
		left = chunk;
	}
	start = next;
	next += whole;
	left -= whole;
	*(size_t *)start = size;
	return start + ALIGNMENT;
}

void free(void *memory)
{
	(void)memory;
}

void *calloc(size_t count, size_t size)
{
	if (size != 0 && count > (size_t)-1 / size)
		return NULL;
	return malloc(count * size);
}

void *realloc(void *memory, size_t size)
{
	void *fresh = malloc(size);

	if (memory != NULL && fresh != NULL) {
		size_t old = *(size_t *)((char *)memory - ALIGNMENT);

		memcpy(fresh, memory, old < size ? old : size);
	}
	return fresh;
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
	char *start = malloc(size + alignment + ALIGNMENT);

	if (start == NULL)
		return 12;
	start += alignment - (size_t)start % alignment;
	if (alignment >= ALIGNMENT)
		*(size_t *)(start - ALIGNMENT) = size;
	*memory = start;
	return 0;
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	int patience_ms = count == 1 && timeout_ms == ITS_PATIENCE_MS ? PATIENCE_MS : timeout_ms;

	return (int)syscall(SYS_poll, fds, count, patience_ms);
}

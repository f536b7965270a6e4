/*
 * libiscsi 1.19 uses freed and uninitialised memory when a process logs in twice over iSER: with
 * this preloaded, memory is zeroed when it is given out, and never given out again.
 */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

static char *next;
static char *end;
static const size_t header = 16;

static void *take(size_t bytes, size_t alignment)
{
	size_t room = bytes + alignment + header + 16;
	char *at;

	if (next == NULL || (size_t)(end - next) < room) {
		size_t area = room > (64u << 20) ? room : (64u << 20);

		next = mmap(NULL, area, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (next == MAP_FAILED)
			return next = NULL;
		end = next + area;
	}
	at = (char *)(((size_t)next + header + alignment - 1) & ~(alignment - 1));
	*(size_t *)(at - header) = bytes;
	next = (char *)(((size_t)at + bytes + 15) & ~(size_t)15);
	return at;
}

void *malloc(size_t bytes) { return take(bytes, 16); }
void *calloc(size_t count, size_t bytes) { return take(count * bytes, 16); }
void *memalign(size_t alignment, size_t bytes)
{
	return take(bytes, alignment < 16 ? 16 : alignment);
}

void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
void free(void *memory) { (void)memory; }

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
	*memory = memalign(alignment, bytes);
	return *memory == NULL ? 12 : 0;
}

void *realloc(void *memory, size_t bytes)
{
	void *larger = malloc(bytes);

	if (memory != NULL && larger != NULL) {
		size_t had = *(size_t *)((char *)memory - header);

		memcpy(larger, memory, had < bytes ? had : bytes);
	}
	return larger;
}

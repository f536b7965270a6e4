/*
 * Preloaded under iscsi-test-cu: libiscsi 1.19 logs in a second time with memory that it has freed,
 * or has not filled. Memory is zeroed, and never given back: each test is a process of its own.
 */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, CHUNK = 16 << 20 };

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

/** Bytes allocated on the heap, collected or not: what garbage collections found, and the rest. */
import { GCProfiler } from 'node:v8';

/** Counts from its making on. */
export class AllocationCount {
  private readonly profiler = new GCProfiler();
  private readonly usedAtStart = process.memoryUsage().heapUsed;

  constructor() {
    this.profiler.start();
  }

  /** Ends the count. */
  stop(): number {
    const usedAtEnd = process.memoryUsage().heapUsed;
    let allocated = 0;
    let used = this.usedAtStart;
    for (const { beforeGC, afterGC } of this.profiler.stop().statistics) {
      allocated += beforeGC.heapStatistics.usedHeapSize - used;
      used = afterGC.heapStatistics.usedHeapSize;
    }
    return allocated + usedAtEnd - used;
  }
}

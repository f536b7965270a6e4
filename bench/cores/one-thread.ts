/** An end whose device is on the thread of its consumer. */
import { Consumer, memoryOf } from './consumer.js';
import { openDevice } from './device.js';
import type { Job, Result } from './job.js';

/**
 * @param onStop takes what ends a server
 * @param onOpen the connection stands, or can be made
 */
export async function onOneThread(
  job: Job,
  onStop: (stop: () => void) => void,
  onOpen: () => void,
): Promise<Result> {
  const memory = memoryOf(job);
  const bytes = new Uint8Array(memory);
  let consumer = new Consumer(job, bytes);
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const give = await openDevice(job, memory, (count) => {
    consumer.take(count);
    if (consumer.over) end();
    else give(count);
  });
  // Connecting does not count.
  consumer = new Consumer(job, bytes);
  onStop(end);
  give(job.depth);
  onOpen();
  await ended;
  return consumer.result();
}

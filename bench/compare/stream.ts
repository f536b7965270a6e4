/** Our client of a stream: keeps `depth` messages in flight, and consumes every completion. */
import { RemoteSegment } from 'dapl';
import { serverSlots } from './cells.js';
import type { Connection } from './connection.js';
import type { Count, Target } from './end.js';
import { LOOKS, StreamClock } from './stream-clock.js';

export async function stream(
  connection: Connection,
  target: Target,
  seconds: number,
): Promise<Count> {
  const { cell, segments } = connection;
  const { bytes, depth, workload } = cell;
  const remote = new RemoteSegment(target);
  const clock = new StreamClock(seconds);
  const every = bytes < 4096 ? LOOKS : 1;
  let messages = 0;
  let inFlight = 0;
  let next = 0;
  let place = 0;
  // WRITEs go round as much memory as SENDs, which take one receive after the other.
  const places = cell.endpoints * serverSlots(cell);
  let isOver = false;
  const post = (): void => {
    const slot = next;
    next = (next + 1) % segments.length;
    const ep = connection.epOf(slot);
    if (workload === 'write') {
      ep.postRdmaWrite(segments[slot]!, slot, remote.seek(place * bytes));
      place = (place + 1) % places;
    } else if (workload === 'read')
      ep.postRdmaRead(segments[slot]!, slot, remote.seek(slot * bytes));
    else ep.postSend(segments[slot]!, slot);
    inFlight += 1;
  };
  const consumed = connection.consume(() => {
    messages += 1;
    inFlight -= 1;
    if (!isOver && messages % every === 0) isOver = clock.isOver(messages);
    if (!isOver) post();
    else if (inFlight === 0) connection.stop();
  });
  connection.burst(() => {
    for (let i = 0; i < depth; i++) post();
  });
  await consumed;
  if (inFlight > 0) throw new Error(`the connection broke with ${inFlight} messages in flight`);
  return clock.count(messages);
}

/** Ping-pong between our two ends: by SEND and receive, or by RDMA WRITE into polled memory. */
import { CompletionFlags, DatDto, RemoteSegment } from 'dapl';
import type { Connection } from './connection.js';
import { type Count, spinUntil } from './end.js';
import { HalfRoundTrips } from './half-round-trips.js';

/** Where of the peer's memory a side writes to. */
export interface Place {
  readonly address: bigint;
  readonly rmrContext: number;
}

export async function ping(connection: Connection, seconds: number): Promise<Count> {
  const { segments } = connection;
  const [ep] = connection.eps;
  const times = new HalfRoundTrips(seconds);
  const consumed = connection.consume((operation, slot) => {
    if (operation !== DatDto.RECEIVE || connection.over) return;
    if (!times.lap()) {
      connection.stop();
      return;
    }
    connection.postRecv(slot);
    ep!.postSend(segments[0]!, 0, CompletionFlags.SUPPRESS);
  });
  times.start();
  ep!.postSend(segments[0]!, 0, CompletionFlags.SUPPRESS);
  await consumed;
  return times.count();
}

/** The server's part of a ping, and of a stream of SENDs: posts receives again, echoes pings. */
export function serve(connection: Connection): Promise<void> {
  const { segments, cell } = connection;
  const echoes = cell.workload !== 'send';
  return connection.consume((operation, slot) => {
    if (operation !== DatDto.RECEIVE || connection.over) return;
    connection.postRecv(slot);
    if (echoes) connection.epOf(slot).postSend(segments[slot]!, 0, CompletionFlags.SUPPRESS);
  });
}

/** Slot 0 of the memory leaves, slot 1 of the peer's is where it arrives. */
class Volley {
  private readonly out: Uint8Array;
  private readonly last: number;
  private readonly memory: Uint8Array;
  private readonly remote: RemoteSegment;

  constructor(
    private readonly connection: Connection,
    place: Place,
  ) {
    const { bytes } = connection.cell;
    this.memory = connection.memory.bytes;
    this.out = connection.segments[0]!.bytes;
    this.remote = new RemoteSegment(place).seek(bytes);
    this.last = 2 * bytes - 1;
  }

  write(ball: number): void {
    const { connection, out } = this;
    out[out.length - 1] = ball;
    connection.eps[0]!.postRdmaWrite(connection.segments[0]!, 0, this.remote);
  }

  /** The last byte that has arrived. */
  seen(): number {
    return this.memory[this.last]!;
  }
}

/** Both sides begin with this in their memory. */
const NONE = 1;

export async function pingByWrite(
  connection: Connection,
  place: Place,
  seconds: number,
): Promise<Count> {
  const volley = new Volley(connection, place);
  const times = new HalfRoundTrips(seconds);
  let ball = NONE + 1;
  const lookForCompletions = connection.looker();
  times.start();
  volley.write(ball);
  await spinUntil(
    () => connection.over,
    () => {
      lookForCompletions();
      if (volley.seen() !== ball) return;
      if (!times.lap()) connection.stop();
      else volley.write((ball = (ball + 1) & 0xff));
    },
  );
  return times.count();
}

/** @param placed where the client is, once it has connected */
export async function serveWrites(
  connection: Connection,
  placed: () => Place | undefined,
): Promise<void> {
  const lookForCompletions = connection.looker();
  let volley: Volley | undefined;
  let ball = NONE;
  await spinUntil(
    () => connection.over,
    () => {
      lookForCompletions();
      const place = placed();
      if (place === undefined) return;
      volley ??= new Volley(connection, place);
      if (volley.seen() === ball) return;
      ball = volley.seen();
      volley.write(ball);
    },
  );
}

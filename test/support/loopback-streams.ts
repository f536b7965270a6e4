/**
 * A byte-stream protocol within the process, for tests of the socket class: no credits but the room
 * of the reader, and faults on demand. Everything reaches the other side in a later turn.
 */
import {
  type ByteStream,
  type ByteStreamEvents,
  type ByteStreamListener,
  type ByteStreamProtocol,
  type StreamAddress,
  type StreamConnectOptions,
  StreamError,
  type StreamErrorCode,
  type StreamListenOptions,
  type WriteDone,
} from '../../samples/ulp/socket/index.js';

interface LoopbackOptions {
  /** Bytes that wait for a reader; the writer waits for room. Default 65536. */
  readonly roomBytes?: number;
  /** Address of listeners and of peers that say none. Default 192.0.2.1. */
  readonly address?: string;
}

const FIRST_FREE_PORT = 49152;

export class LoopbackStreams implements ByteStreamProtocol {
  readonly name = 'loopback';
  /** All streams that were made, in order: client, server, client and so on. */
  readonly streams: LoopbackStream[] = [];
  /** What the next `connect` ends with. */
  nextConnectError: StreamErrorCode | undefined = undefined;
  /** The next `connect` gets no answer. */
  isSilent = false;
  private readonly listeners = new Map<number, StreamListenOptions>();
  private readonly roomBytes: number;
  private readonly address: string;
  private nextPort = FIRST_FREE_PORT;

  constructor({ roomBytes = 65536, address = '192.0.2.1' }: LoopbackOptions = {}) {
    this.roomBytes = roomBytes;
    this.address = address;
  }

  async connect(options: StreamConnectOptions): Promise<ByteStream> {
    const { address, port, signal } = options;
    await aTurn();
    if (this.isSilent) {
      await new Promise<never>((_, reject) =>
        signal?.addEventListener('abort', () => reject(new Error('given up'))),
      );
    }
    const refuse = (code: StreamErrorCode): StreamError =>
      new StreamError(code, { syscall: 'connect', address, port });
    const code = this.nextConnectError;
    this.nextConnectError = undefined;
    if (code !== undefined) throw refuse(code);
    const listener = this.listeners.get(port);
    const local = {
      address: options.localAddress ?? this.address,
      port: options.localPort ?? this.nextPort++,
    };
    const remote = { address, port };
    if (listener?.admit(local, remote) !== true) throw refuse('ECONNREFUSED');
    const [client, server] = LoopbackStream.pair(local, remote, this.roomBytes);
    this.streams.push(client, server);
    setImmediate(() => listener.onStream(server));
    return client;
  }

  async listen(options: StreamListenOptions): Promise<ByteStreamListener> {
    await aTurn();
    const port = options.port === 0 ? this.nextPort++ : options.port;
    const local = { address: options.address ?? this.address, port };
    if (this.listeners.has(port)) {
      throw new StreamError('EADDRINUSE', { syscall: 'listen', ...local });
    }
    this.listeners.set(port, options);
    return {
      local,
      close: async () => {
        this.listeners.delete(port);
        await aTurn();
      },
      ref: () => undefined,
      unref: () => undefined,
    };
  }
}

function aTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export class LoopbackStream implements ByteStream {
  takenBytes = 0;
  keepAliveMs = 0;
  isRefed = true;
  /** Bytes that have come and were not consumed. */
  waitingBytes = 0;
  private events: ByteStreamEvents | undefined = undefined;
  private peer!: LoopbackStream;
  private readonly waiting: Uint8Array[] = [];
  private peerHasEnded = false;
  private takesNoMore = false;
  private isOver = false;
  private writing: { chunks: Uint8Array[]; readonly done: WriteDone } | undefined = undefined;

  private constructor(
    readonly local: StreamAddress,
    readonly remote: StreamAddress,
    private readonly roomBytes: number,
  ) {}

  static pair(
    local: StreamAddress,
    remote: StreamAddress,
    roomBytes: number,
  ): [LoopbackStream, LoopbackStream] {
    const client = new LoopbackStream(local, remote, roomBytes);
    const server = new LoopbackStream(remote, local, roomBytes);
    client.peer = server;
    server.peer = client;
    return [client, server];
  }

  start(events: ByteStreamEvents): void {
    this.events = events;
    if (this.waiting.length > 0 || this.peerHasEnded) events.onReadable();
  }

  write(chunks: readonly Uint8Array[], done: WriteDone): void {
    if (this.takesNoMore || this.isOver) {
      done(this.error('EPIPE'));
      return;
    }
    this.writing = { chunks: [...chunks], done };
    this.carry();
  }

  /** Moves what there is room for. */
  private carry(): void {
    const { writing, peer } = this;
    if (writing === undefined) return;
    for (let [chunk] = writing.chunks; chunk !== undefined; [chunk] = writing.chunks) {
      const size = Math.min(chunk.length, this.roomBytes - peer.waitingBytes);
      if (size > 0) peer.arrive(Uint8Array.from(chunk.subarray(0, size)));
      this.takenBytes += size;
      if (size < chunk.length) {
        writing.chunks[0] = chunk.subarray(size);
        return;
      }
      writing.chunks.shift();
    }
    this.writing = undefined;
    writing.done();
  }

  private arrive(bytes: Uint8Array): void {
    this.waitingBytes += bytes.length;
    setImmediate(() => {
      this.waiting.push(bytes);
      this.events?.onReadable();
    });
  }

  peek(): Uint8Array | undefined {
    return this.waiting[0];
  }

  consume(bytes: number): void {
    const [oldest] = this.waiting;
    if (oldest === undefined || bytes < 1 || bytes > oldest.length) {
      throw new Error(`${bytes} of ${String(oldest?.length)} bytes cannot be consumed`);
    }
    if (bytes === oldest.length) this.waiting.shift();
    else this.waiting[0] = oldest.subarray(bytes);
    this.waitingBytes -= bytes;
    setImmediate(() => this.peer.carry());
  }

  get hasEnded(): boolean {
    return this.peerHasEnded && this.waiting.length === 0;
  }

  shutdown(done: WriteDone): void {
    if (this.takesNoMore) {
      done(this.error('EPIPE'));
      return;
    }
    this.takesNoMore = true;
    setImmediate(() => {
      this.peer.peerHasEnded = true;
      this.peer.events?.onReadable();
      done();
    });
  }

  close(): void {
    if (this.isOver) return;
    this.finish();
    setImmediate(() => {
      this.peer.peerHasEnded = true;
      this.peer.takesNoMore = true;
      this.peer.stopWriting('ECONNRESET');
      this.peer.events?.onReadable();
      this.events?.onClose();
    });
  }

  abort(): void {
    if (this.isOver) return;
    this.finish();
    setImmediate(() => {
      this.peer.break('ECONNRESET');
      this.events?.onClose();
    });
  }

  /** The connection is lost here. */
  break(code: StreamErrorCode): void {
    if (this.isOver) return;
    this.isOver = true;
    this.stopWriting(code);
    this.events?.onClose(this.error(code));
  }

  private finish(): void {
    this.isOver = true;
    this.stopWriting('ECONNABORTED');
  }

  private stopWriting(code: StreamErrorCode): void {
    const { writing } = this;
    this.writing = undefined;
    writing?.done(this.error(code));
  }

  private error(code: StreamErrorCode): StreamError {
    return new StreamError(code, { syscall: code === 'EPIPE' ? 'write' : 'read' });
  }

  setKeepAlive(intervalMs: number): void {
    this.keepAliveMs = intervalMs;
  }

  ref(): void {
    this.isRefed = true;
  }

  unref(): void {
    this.isRefed = false;
  }
}

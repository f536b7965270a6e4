/**
 * An agent over umad: the kernel routes, matches, repeats and segments; this gives each send and
 * each datagram back to its owner. Its file and its agent in the kernel are one.
 */
import { constants } from 'node:os';
import {
  headerOfAnyLength,
  isIpv4Gid,
  isResponse,
  isRmppClass,
  MAD_BYTES,
  type MadAddress,
  type MadAgentOptions,
  type MadHeader,
  type MadSend as MadSendOptions,
  type MadSendHandle,
  type MadSendResult,
  type ReceivedMad,
  SpiError,
} from '../../../core/spi/index.js';
import { checkSend } from '../../../plugins/mad/provider.js';
import { checkQkey, GONE, sendFailure, silentFailure, unmatchable } from './errors.js';
import { UmadFile } from './file.js';
import {
  emitPacket,
  markTransfer,
  type PacketHeader,
  restoreTransactionId,
  sourceOf,
} from './packet.js';
import { UmadSend, type UmadSendOwner } from './send.js';
import type { PortAgent, UmadServices } from './services.js';

// How long the kernel takes at most to say what has become of a request.

/** The kernel waits no longer for an ACK, and repeats then. */
const ACK_WAIT_MS = 2000;
/** A receiver of the kernel's lets an eighth of QP1's receive queue come before it answers. */
const LEAST_WINDOW = 8;
/** Least data of a segment: 256 bytes without the longest headers. */
const LEAST_SEGMENT_BYTES = MAD_BYTES - 64;
/** Slack for queues, and for work queues of the kernel. */
const SLACK_MS = 2000;
/** The longest that the kernel's header can say. */
const MAX_TIMEOUT_MS = 0x7fffffff;

/** Whole milliseconds, which is how the kernel counts. */
function timeoutMsOf(timeoutUs: number): number {
  return Math.min(Math.ceil(timeoutUs / 1000), MAX_TIMEOUT_MS);
}

/** @param transferBytes of an RMPP transfer; 0 for a single datagram */
function longestWaitUs(timeoutMs: number, retries: number, transferBytes: number): number {
  const tries = retries + 1;
  const windows = Math.ceil(transferBytes / LEAST_SEGMENT_BYTES / LEAST_WINDOW);
  const acks = windows * tries * Math.min(timeoutMs, ACK_WAIT_MS);
  return (acks + tries * timeoutMs + SLACK_MS) * 1000;
}

/** Sends that one agent may have outstanding. */
const MAX_SENDS = 65_536;
const { ETIMEDOUT } = constants.errno;

export class UmadAgent implements PortAgent, UmadSendOwner {
  private readonly file: UmadFile;
  private readonly sends = new Map<number, UmadSend>();
  private readonly asking = new Map<string, UmadSend>();
  private nextToken = 0;
  /** The file, and reports that are due. */
  private references = 1;
  private gone = false;
  private resolveEnded: () => void = () => undefined;
  /** Resolves when unregistering is over. */
  readonly ended = new Promise<void>((resolve) => (this.resolveEnded = resolve));
  private unregistering = false;

  /** @throws SpiError as `MadModule.registerAgent`; nothing is left behind then */
  constructor(
    readonly hiTid: number,
    readonly options: MadAgentOptions,
    private readonly services: UmadServices,
    private readonly onUnregister: (agent: PortAgent) => void,
  ) {
    const { native, path } = services;
    this.file = new UmadFile(native, path, options, options.rmpp === true, {
      onPacket: (header, mad) => this.onPacket(header, mad),
      onWritten: (token, errno) => this.onWritten(token, errno),
      onGone: () => this.onGone(),
      onClosed: () => this.onClosed(),
    });
  }

  send(options: MadSendOptions): MadSendHandle {
    this.checkMaySend();
    const { header, transferHeader } = checkSend(options, this.options, this.hiTid);
    this.checkForKernel(options, header);
    const { destination, retries, data } = options;
    const timeoutMs = header ? timeoutMsOf(options.timeoutUs) : 0;
    const key = timeoutMs > 0 && header ? keyOf(header) : undefined;
    if (key !== undefined && this.asking.has(key)) throw taken();
    const token = this.newToken();
    const { gid } = destination;
    const send: UmadSend = new UmadSend(this.services, this, {
      token,
      context: options.context,
      gid,
      key,
      longestWaitUs: longestWaitUs(timeoutMs, retries, transferHeader ? data.length : 0),
      silence: () => this.silence(send),
    });
    const gidIndex = this.services.own.hardwareGidIndex(destination.localGidIndex);
    const packet = emitPacket(destination, gidIndex, timeoutMs, retries, data);
    if (transferHeader) markTransfer(packet);
    this.file.write(token, packet);
    this.sends.set(token, send);
    if (key !== undefined) this.asking.set(key, send);
    return send;
  }

  cancel(handle: MadSendHandle): void {
    this.own(handle)?.cancel();
  }

  /** @throws SpiError('EOPNOTSUPP'): the kernel has no such call */
  modify(handle: MadSendHandle, timeoutUs: number): void {
    this.own(handle);
    throw new SpiError(
      'EOPNOTSUPP',
      `timeout ${timeoutUs} us: the kernel's interface has no way to change that of a request ` +
        'which it has; cancel it and send another one',
    );
  }

  unregister(): Promise<void> {
    if (this.unregistering) return this.ended;
    this.unregistering = true;
    this.onUnregister(this);
    this.file.close();
    this.endIfThrough();
    return this.ended;
  }

  // --- as sends see it ---------------------------------------------------------------------------

  retain(): void {
    this.references++;
  }

  release(): void {
    this.references--;
    this.endIfThrough();
  }

  drain(): void {
    this.file.drain();
  }

  deliver(received: ReceivedMad): void {
    this.guard('receive', () => this.options.onReceive(received));
  }

  report(send: UmadSend, result: MadSendResult): void {
    this.sends.delete(send.init.token);
    this.forget(send);
    this.guard('send', () => this.options.onSend(result));
  }

  // --- as the file sees it -----------------------------------------------------------------------

  private onWritten(token: number, errno: number): void {
    const send = this.sends.get(token);
    if (errno === 0) send?.written();
    else if (GONE.has(errno)) this.onGone();
    else send?.refused(sendFailure(errno, send.init.gid));
  }

  private onPacket(packet: PacketHeader, mad: Uint8Array): void {
    const header = headerOfAnyLength(mad);
    if (this.unregistering || !header) return;
    const source = sourceOf(packet, this.services.own);
    if (packet.status !== 0) this.onReturned(packet, header);
    else if (source) this.onDatagram(mad, header, source);
    else this.services.counters.withoutGid++;
  }

  private onDatagram(data: Uint8Array, header: MadHeader, source: MadAddress): void {
    if (!isResponse(header)) {
      this.deliver({ data, source });
      return;
    }
    const send = this.asking.get(keyOf(header));
    if (send?.awaitsResponse !== true) {
      this.services.counters.unmatchedResponses++;
      return;
    }
    restoreTransactionId(data, this.hiTid);
    this.forget(send);
    send.respond({ data, source });
  }

  /** A send of ours that is returned: no response arrived, or no ACK. */
  private onReturned({ status }: PacketHeader, header: MadHeader): void {
    const send = isResponse(header) ? undefined : this.asking.get(keyOf(header));
    if (!send) {
      const { counters, logger } = this.services;
      counters.lateTimeouts++;
      const { managementClass, method, transactionIdLo } = header;
      const fields = { managementClass, method, transactionIdLo };
      logger.info('an RMPP transfer has not arrived: its sender was told that it left', fields);
    } else if (status === ETIMEDOUT) send.timedOut();
    else send.refused(sendFailure(status, send.init.gid));
  }

  private onGone(): void {
    if (this.gone) return;
    this.gone = true;
    this.flush();
    this.file.close();
  }

  private onClosed(): void {
    this.flush();
    this.release();
  }

  private endIfThrough(): void {
    if (this.references === 0 && this.unregistering) this.resolveEnded();
  }

  private flush(): void {
    for (const send of [...this.sends.values()]) send.flush();
  }

  // ----------------------------------------------------------------------------------------------

  private checkMaySend(): void {
    const { size } = this.sends;
    if (this.unregistering) throw new SpiError('EINVAL', 'the agent has been unregistered');
    if (this.gone) throw new SpiError('ENODEV', `${this.services.path}: the device is gone`);
    if (size >= MAX_SENDS) {
      throw new SpiError('ENOMEM', `${size} sends outstanding: the limit of an agent`);
    }
  }

  /**
   * Rejects options that the kernel's interface cannot express or do, or refuses without a reason.
   */
  private checkForKernel(options: MadSendOptions, header: MadHeader | undefined): void {
    const { destination, timeoutUs } = options;
    checkQkey(destination);
    const awaitsAnything = timeoutUs > 0 || this.options.rmpp === true;
    if (awaitsAnything && isIpv4Gid(destination.gid)) throw unmatchable(destination.gid);
    if (this.options.rmpp === true && header && !isRmppClass(header.managementClass)) {
      throw new SpiError(
        'EINVAL',
        `class 0x${header.managementClass.toString(16)} has no RMPP, and the kernel lets an ` +
          'agent with RMPP send nothing else',
      );
    }
  }

  private silence(send: UmadSend): SpiError {
    this.services.counters.silences++;
    return silentFailure(send.init.gid);
  }

  private newToken(): number {
    do {
      this.nextToken = (this.nextToken + 1) >>> 0;
    } while (this.sends.has(this.nextToken));
    return this.nextToken;
  }

  /** Its transaction id may be used again. */
  private forget(send: UmadSend): void {
    const { key } = send.init;
    if (key !== undefined && this.asking.get(key) === send) this.asking.delete(key);
  }

  private own(handle: MadSendHandle): UmadSend | undefined {
    if (handle instanceof UmadSend) {
      if (handle.isDone) return undefined;
      if (this.sends.get(handle.init.token) === handle) return handle;
    }
    throw new SpiError('EINVAL', 'that send is not of this agent');
  }

  private guard(handler: string, call: () => void): void {
    try {
      call();
    } catch (error) {
      this.services.logger.error(`the ${handler} handler of a MAD agent threw`, { error });
    }
  }
}

/** The kernel's rule: one request of an agent with this number and class, wherever it goes. */
function keyOf({ transactionIdLo, managementClass }: MadHeader): string {
  return `${transactionIdLo}:${managementClass}`;
}

function taken(): SpiError {
  return new SpiError('EINVAL', 'a request with this transaction id is outstanding');
}

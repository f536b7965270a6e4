/**
 * An agent with RMPP where the kernel's cannot work: over RoCE on IPv4 Linux recognizes neither
 * responses nor acknowledgements (docs/mad.md). So the transfers are those of plugins/mad, in
 * datagrams that the kernel only carries. A request without RMPP takes the kernel's way: a second
 * agent asks, and the kernel matches the response.
 */
import {
  type Gid,
  headerOfAnyLength,
  isResponse,
  type MadAgentOptions,
  type MadSend as MadSendOptions,
  type MadSendHandle,
  type MadSendResult,
  WcStatus,
} from '../../../core/spi/index.js';
import { Agent, checkSend } from '../../../plugins/mad/provider.js';
import { UmadAgent } from './agent.js';
import { checkQkey } from './errors.js';
import { UmadFile } from './file.js';
import { type PacketHeader, restoreTransactionId, sourceOf } from './packet.js';
import { UmadSend } from './send.js';
import type { PortAgent, UmadServices } from './services.js';
import { TransferPort } from './transfer-port.js';

/** Segments per ACK: the kernel's window, 1/8 of its receive queue. */
const WINDOW = 64;

export class TransferAgent implements PortAgent {
  private readonly file: UmadFile;
  private readonly port: TransferPort;
  private readonly agent: Agent;
  /** Asks without RMPP. */
  private asker: UmadAgent | undefined;
  private readonly peers = new WeakMap<MadSendHandle, Gid>();
  private resolveClosed: () => void = () => undefined;
  private readonly closed = new Promise<void>((resolve) => (this.resolveClosed = resolve));
  private unregistered: Promise<void> | undefined;
  private resolveEnded: () => void = () => undefined;
  readonly ended = new Promise<void>((resolve) => (this.resolveEnded = resolve));

  /** @throws SpiError as `MadModule.registerAgent`; nothing is left behind then */
  constructor(
    readonly hiTid: number,
    readonly options: MadAgentOptions,
    private readonly services: UmadServices,
    private readonly onUnregister: (agent: PortAgent) => void,
  ) {
    const { native, path, own, scheduler, rmppCounters, rmppAllowance } = services;
    this.port = new TransferPort(
      () => this.file,
      own,
      scheduler,
      () => this.onGone(),
    );
    const { port } = this;
    const rmpp = { ...services, port, counters: rmppCounters, allowance: rmppAllowance };
    this.agent = new Agent(
      hiTid,
      { ...options, onSend: (result) => this.report(result) },
      { ...services, port, rmpp: { ...rmpp, window: WINDOW } },
      () => undefined,
    );
    this.file = new UmadFile(native, path, options, false, {
      onPacket: (packet, mad) => this.onPacket(packet, mad),
      onWritten: (token, errno) => port.onWritten(token, errno),
      onGone: () => this.onGone(),
      onClosed: () => this.resolveClosed(),
    });
  }

  send(options: MadSendOptions): MadSendHandle {
    checkQkey(options.destination);
    const handle = this.isPlainRequest(options)
      ? this.askerOf().send(options)
      : this.agent.send(options);
    this.peers.set(handle, options.destination.gid.slice());
    return handle;
  }

  cancel(handle: MadSendHandle): void {
    if (handle instanceof UmadSend && this.asker) this.asker.cancel(handle);
    else this.agent.cancel(handle);
  }

  /** @throws SpiError('EOPNOTSUPP') for a request without RMPP, which is the kernel's */
  modify(handle: MadSendHandle, timeoutUs: number): void {
    if (handle instanceof UmadSend && this.asker) this.asker.modify(handle, timeoutUs);
    else this.agent.modify(handle, timeoutUs);
  }

  unregister(): Promise<void> {
    if (this.unregistered === undefined) {
      this.onUnregister(this);
      this.unregistered = this.end().then(this.resolveEnded);
    }
    return this.ended;
  }

  /** Ends the agents. Sends that are being written complete while the file is there. */
  private async end(): Promise<void> {
    await Promise.all([this.agent.unregister(), this.asker?.unregister()]);
    this.file.close();
    await this.closed;
  }

  private isPlainRequest(options: MadSendOptions): boolean {
    if (this.unregistered !== undefined || options.timeoutUs === 0) return false;
    const { header, transferHeader } = checkSend(options, this.options, this.hiTid);
    return header !== undefined && transferHeader === undefined;
  }

  private askerOf(): UmadAgent {
    const options = { ...this.options, methods: [], rmpp: false };
    this.asker ??= new UmadAgent(this.hiTid, options, this.services, () => undefined);
    return this.asker;
  }

  private onPacket(packet: PacketHeader, mad: Uint8Array): void {
    const header = headerOfAnyLength(mad);
    const { counters, own } = this.services;
    if (!header || packet.status !== 0) return;
    const source = sourceOf(packet, own);
    if (!source) {
      counters.withoutGid++;
      return;
    }
    const answers = isResponse(header);
    if (answers) restoreTransactionId(mad, this.hiTid);
    const known = answers ? { ...header, transactionIdHi: this.hiTid } : header;
    if (!this.agent.take({ data: mad, source }, known)) counters.unmatchedResponses++;
  }

  private report(result: MadSendResult): void {
    const gid = this.peers.get(result.handle);
    const failed = result.status === WcStatus.GENERAL_ERR;
    const error = failed && gid ? this.port.failureOf(gid) : undefined;
    this.options.onSend(error ? { ...result, error } : result);
  }

  private onGone(): void {
    if (!this.port.isOpen) return;
    this.port.isOpen = false;
    this.agent.flush();
    this.file.close();
  }
}

/** Checks the contract of packet ports during every behaviour, and names violations. */
import {
  GROUP_BIT,
  isIpv4Gid,
  type NetworkReport,
  type PacketPort,
  type PacketPortHandlers,
  RX,
  RxFlags,
} from 'dapl/spi';

type Method = (...values: unknown[]) => unknown;

/** Watches both ports of a pair. */
export class PortGuard {
  /** Rejects at the first violation, and if a handler of a behaviour throws. */
  readonly broken: Promise<never>;
  private readonly reject: (error: Error) => void;
  /** The error of `broken`. Further calls throw it, too, so that the behaviour ends. */
  private failure: Error | undefined;
  /** Calls in progress on either port: no handler may start inside one. */
  private readonly calls: string[] = [];
  private readonly closed = new Set<PacketPort>();

  constructor() {
    let rejectBroken: (error: Error) => void = () => undefined;
    this.broken = new Promise((_, reject) => (rejectBroken = reject));
    this.reject = rejectBroken;
    // The behaviour may have ended already, and then nobody handles the rejection.
    this.broken.catch(() => undefined);
  }

  /** Wraps a port. The wrapper has exactly the members that the port has. */
  over(port: PacketPort): PacketPort {
    return new Proxy(port, {
      get: (_, name) => {
        const member: unknown = Reflect.get(port, name, port);
        if (typeof member !== 'function') return member;
        return (...values: unknown[]) => this.call(port, String(name), member as Method, values);
      },
    });
  }

  private call(port: PacketPort, name: string, member: Method, values: unknown[]): unknown {
    if (name === 'watch') values = [this.handlersOf(port, values[0] as PacketPortHandlers)];
    if (name === 'close') this.closed.add(port);
    else if (this.failure) throw this.failure;
    this.calls.push(name);
    try {
      const result: unknown = Reflect.apply(member, port, values);
      if (name === 'receive') this.checkReceived(port, result as number);
      return result;
    } finally {
      this.calls.pop();
    }
  }

  private handlersOf(port: PacketPort, handlers: PacketPortHandlers): PacketPortHandlers {
    return {
      onReadable: () => this.handle(port, 'onReadable', () => handlers.onReadable()),
      onWritable: () => this.handle(port, 'onWritable', () => handlers.onWritable()),
      onReport: (report) => {
        this.checkReport(report);
        this.handle(port, 'onReport', () => handlers.onReport(report));
      },
    };
  }

  private handle(port: PacketPort, name: keyof PacketPortHandlers, run: () => void): void {
    const inside = this.calls.at(-1);
    if (inside !== undefined) this.break(`${name} was called inside ${inside}`);
    if (this.closed.has(port)) this.break(`${name} was called after close`);
    const before = this.calls.splice(0);
    try {
      run();
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    } finally {
      this.calls.push(...before);
    }
  }

  private checkReport(report: NetworkReport): void {
    if (report.type !== 'peer-gone' || this.closed.size > 0) return;
    this.break(`onReport said peer-gone of path ${report.path}, and both ports are open`);
  }

  private checkReceived({ gids, rxPackets }: PacketPort, count: number): void {
    for (let at = 0; at < count * RX.WORDS; at += RX.WORDS) {
      const index = rxPackets[at + RX.LOCAL_GID_INDEX]!;
      if (index >= GROUP_BIT) continue;
      const gid = gids[index];
      const isIpv4 = (rxPackets[at + RX.FLAGS]! & RxFlags.IPV6) === 0;
      if (gid !== undefined && isIpv4Gid(gid) === isIpv4) continue;
      const [family, has] = [isIpv4 ? 'IPv4' : 'IPv6', `the port has ${gids.length} addresses`];
      this.break(`a packet of ${family} has the LOCAL_GID_INDEX ${index}: ${has}`);
    }
  }

  private fail(error: Error): void {
    this.failure ??= error;
    this.reject(this.failure);
  }

  private break(what: string): void {
    this.fail(new Error(`contract of the packet port: ${what}`));
  }
}

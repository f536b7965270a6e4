/** Address handles: destinations of datagrams. */
import { ANYTHING, assert, hex, integer, optional, show, showAs } from '../../spi/checks/index.js';
import { DatError, spiCall } from '../../errors/index.js';
import type { AddressHandle, Gid } from '../../spi/index.js';
import { checkAddressed, sourceIndex } from '../common/ip-address.js';
import { nextHandleId } from '../common/handle.js';
import type { Pz } from '../memory/pz.js';

const UD_ADDRESS = {
  address: ANYTHING,
  qpn: integer(2, 0xffffff),
  qkey: optional(integer(0, 0xffffffff)),
};

/** Destination; the `source` of a received datagram is one. */
export interface UdAddress {
  /** IP address of the peer, as text. */
  readonly address: string;
  /** Its queue pair number, 2 to 2^24 - 1. */
  readonly qpn: number;
  /** Its Q_Key; default that of our endpoint. */
  readonly qkey?: number;
}

export interface CheckedUdAddress {
  readonly gid: Gid;
  readonly address: string;
  readonly qpn: number;
  readonly qkey: number;
}

/** @throws DatError DAT_INVALID_PARAMETER, DAT_INVALID_ADDRESS */
export function checkUdAddress(
  operation: string,
  value: UdAddress,
  defaultQkey: number,
): CheckedUdAddress {
  const gid = checkAddressed(operation, value, UD_ADDRESS);
  const { address, qpn, qkey = defaultQkey } = value;
  return { gid, address, qpn, qkey };
}

/** Made by `ep.createAddressHandle()` and `ep.resolve()`; ends with its endpoint at the latest. */
export class UdAddressHandle {
  static {
    showAs(this, 'UdAddressHandle', ({ id, address, qpn, ended: freed }) => {
      return { id, address, qpn: hex(qpn), freed };
    });
  }

  readonly id = nextHandleId();
  /** Private data of the service's answer; empty if it was not resolved. */
  readonly privateData: Uint8Array;
  readonly address: string;
  readonly qpn: number;
  readonly qkey: number;
  private readonly handle: AddressHandle;
  private inFlight = 0;
  private ended = false;

  /** @internal */
  constructor(
    readonly pz: Pz,
    to: CheckedUdAddress,
    privateData: Uint8Array,
    private readonly onFreed: (handle: UdAddressHandle) => void,
  ) {
    this.privateData = privateData;
    this.address = to.address;
    this.qpn = to.qpn;
    this.qkey = to.qkey;
    const { device } = pz.core.context;
    const operation = 'ep.createAddressHandle';
    const localGidIndex = sourceIndex(operation, device, to.gid);
    this.handle = spiCall({ operation, value: to.address }, () =>
      device.createAddressHandle(pz.pd, { gid: to.gid, localGidIndex }),
    );
  }

  /** True once it is freed: no datagram can be posted to it. */
  get isFreed(): boolean {
    return this.ended;
  }

  /**
   * Frees the handle (dat_ib_ud_ah_free). Posted datagrams are still sent. Again: no-op.
   */
  free(): void {
    if (this.ended) return;
    this.pz.core.context.trace?.('ah.free', { ah: this.id });
    this.ended = true;
    this.onFreed(this);
    if (this.inFlight === 0) this.handle.destroy();
  }

  [Symbol.dispose](): void {
    this.free();
  }

  /** @internal a posted datagram refers to it; returns the number for the request */
  use(): number {
    this.inFlight++;
    return this.handle.handle;
  }

  /** @internal that datagram has ended */
  release(): void {
    assert(this.inFlight > 0, 'a datagram ends once', this);
    this.inFlight--;
    if (this.ended && this.inFlight === 0) this.handle.destroy();
  }
}

/** @throws DatError DAT_INVALID_HANDLE, DAT_PROTECTION_VIOLATION */
export function checkAddressHandle(
  operation: string,
  value: unknown,
  pz: Pz,
): asserts value is UdAddressHandle {
  if (value instanceof UdAddressHandle && !value.isFreed && value.pz === pz) return;
  const isHandle = value instanceof UdAddressHandle;
  if (isHandle && !value.isFreed) {
    throw new DatError('DAT_PROTECTION_VIOLATION', {
      operation,
      message: `address handle ${value.id} belongs to protection zone ${value.pz.id}`,
      hint: 'take one of an endpoint of the same protection zone: ep.resolve() makes them',
      value,
    });
  }
  throw new DatError('DAT_INVALID_HANDLE', {
    operation,
    message: isHandle
      ? `address handle ${value.id} has been freed`
      : `${show(value)} is not an address handle`,
    hint: isHandle ? undefined : 'ep.resolve() and ep.createAddressHandle() make them',
    value,
  });
}

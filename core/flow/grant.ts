/** Memory of this side that the peer may reach, until it is revoked. */
import { MemPrivileges } from '../dat/common/constants.js';
import type { Lmr } from '../dat/memory/lmr.js';
import type { LmrSegment } from '../dat/memory/segment.js';
import { showAs } from '../spi/checks/index.js';
import { flowCall } from './flow-error.js';

const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC } = MemPrivileges;
const LOCAL = LOCAL_READ | LOCAL_WRITE;

/** Accesses that a grant gives the peer, as privileges of the region. */
export const GRANT_ACCESS = {
  read: LOCAL | REMOTE_READ,
  write: LOCAL | REMOTE_WRITE,
  'read-write': LOCAL | REMOTE_READ | REMOTE_WRITE,
  atomic: LOCAL | REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC,
} as const;
export type GrantAccess = keyof typeof GRANT_ACCESS;

/** The part of a grant that the peer needs; `JSON.stringify(grant)` is its text. */
export interface GrantJson {
  readonly address: string;
  readonly rmrContext: number;
  readonly length: number;
}

/** Made by `conn.expose()`. Anyone who has its context can reach the memory: tell only the peer. */
export class Grant implements GrantJson {
  static {
    showAs(this, 'Grant', ({ address, length, isRevoked: revoked }) => {
      return { address, length, revoked };
    });
    // Logs show the line above. The peer gets JSON of its own.
    const toJSON = function (this: Grant): GrantJson {
      return this.told();
    };
    Object.defineProperty(this.prototype, 'toJSON', { value: toJSON });
  }

  /** As text, because JSON has no bigint: `0x7f0000001000`. */
  readonly address: string;
  readonly rmrContext: number;
  readonly length: number;

  /** @internal */
  constructor(
    private readonly lmr: Lmr,
    private readonly onRevoked: (grant: Grant) => void,
  ) {
    this.address = `0x${lmr.address.toString(16)}`;
    this.rmrContext = lmr.rmrContext as number;
    this.length = lmr.lengthBytes;
  }

  /** The memory itself: a peer with write access may change it at any time. */
  get bytes(): Uint8Array {
    return this.lmr.bytes;
  }

  get isRevoked(): boolean {
    return this.lmr.isFreed;
  }

  /**
   * A part of the memory, to be sent or written from here without a copy.
   * @throws FlowError DAT_INVALID_HANDLE once it is revoked; DAT_INVALID_PARAMETER
   */
  segment(offsetBytes = 0, lengthBytes?: number): LmrSegment {
    return flowCall('grant.segment', () => this.lmr.segment(offsetBytes, lengthBytes));
  }

  /**
   * Ends the peer's access now: a later access breaks the connection. Again: no-op.
   * @throws FlowError DAT_INVALID_STATE while requests of this side use it
   */
  revoke(): void {
    if (this.isRevoked) return;
    flowCall('grant.revoke', () => this.lmr.free());
    this.onRevoked(this);
  }

  [Symbol.dispose](): void {
    this.revoke();
  }

  /** @internal */
  told(): GrantJson {
    const { address, rmrContext, length } = this;
    return { address, rmrContext, length };
  }
}

/** Address handles: destinations of datagrams, by small numbers that a send request carries. */
import { type AddressHandle, SpiError } from '../../../core/spi/index.js';
import type { Domain } from '../memory/domain.js';

export class SoftAddressHandle implements AddressHandle {
  private destroyed = false;

  constructor(
    private readonly table: AddressHandleTable,
    readonly handle: number,
    readonly domain: Domain,
    readonly path: number,
  ) {}

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.table.remove(this);
  }
}

export class AddressHandleTable {
  private readonly handles: (SoftAddressHandle | undefined)[] = [undefined];
  private readonly free: number[] = [];

  /** @param releasePath gives a path back once no packet to send refers to it */
  constructor(private readonly releasePath: (path: number) => void) {}

  create(domain: Domain, path: number): SoftAddressHandle {
    const number = this.free.pop() ?? this.handles.length;
    if (number > 0xffffffff) throw new SpiError('ENOMEM', 'no address handle number is free');
    const handle = new SoftAddressHandle(this, number, domain, path);
    this.handles[number] = handle;
    domain.children += 1;
    return handle;
  }

  find(handle: number): SoftAddressHandle | undefined {
    return this.handles[handle];
  }

  /** The device closes: whatever is left goes. */
  destroyAll(): void {
    for (const handle of this.handles) handle?.destroy();
  }

  remove(handle: SoftAddressHandle): void {
    this.handles[handle.handle] = undefined;
    this.free.push(handle.handle);
    handle.domain.children -= 1;
    this.releasePath(handle.path);
  }
}

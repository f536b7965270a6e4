/** The calls of an interface adapter that make protection zones and memory regions. */
import { DatError, spiCall } from '../errors/index.js';
import { flagNames, MemPrivileges } from './constants.js';
import { checkBits, checkInteger, checkOptions } from './guards.js';
import { checkHandle } from './handle.js';
import { IaBase } from './ia-base.js';
import { registerAtRandom } from './iova.js';
import { Lmr, type LmrOptions } from './lmr.js';
import { checkMemory } from './memory-source.js';
import { accessOf, PRIVILEGE_MASK } from './privileges.js';
import { Pz } from './pz.js';
import { Srq } from './srq.js';
import { srqAttributes, type SrqOptions } from './srq-attributes.js';
import { Symbolic } from './trace.js';

export abstract class IaMemory extends IaBase {
  /** Makes a protection zone (dat_pz_create). */
  createPz(): Pz {
    this.begin('ia.createPz');
    const { device } = this.context;
    const pd = spiCall({ operation: 'ia.createPz', map: { ENOMEM: NO_ZONE } }, () =>
      device.createProtectionDomain(),
    );
    return this.adopt(new Pz(this.self, pd));
  }

  /**
   * Registers existing memory (dat_lmr_create). It stays the consumer's to read and write, and must
   * not be transferred away before `lmr.free()`.
   * @param memory an ArrayBuffer or a view: not pooled, resizable, shared or detached
   * @throws DatError DAT_INVALID_PARAMETER, DAT_MODEL_NOT_SUPPORTED (SharedArrayBuffer),
   * DAT_LENGTH_ERROR, DAT_INVALID_HANDLE (pz), DAT_INSUFFICIENT_RESOURCES
   */
  createLmr(memory: ArrayBuffer | ArrayBufferView, options: LmrOptions): Lmr {
    const operation = 'ia.createLmr';
    this.begin(operation, { privileges: privilegesText(options) });
    const privileges = this.checkLmrOptions(operation, options);
    return this.register(operation, checkMemory(operation, 2, memory), options.pz, privileges);
  }

  /**
   * Allocates memory that suits the device, zeroed, and registers it.
   * @param lengthBytes 1 up to `maxLmrBlockSize`
   * @throws DatError as `createLmr`
   */
  allocate(lengthBytes: number, options: LmrOptions): Lmr {
    const operation = 'ia.allocate';
    this.begin(operation, { lengthBytes, privileges: privilegesText(options) });
    const { device } = this.context;
    const most = device.attributes.maxMemoryRegionBytes;
    checkInteger(operation, 1, 'lengthBytes', lengthBytes, 1, most);
    const privileges = this.checkLmrOptions(operation, options);
    const buffer = spiCall({ operation, value: lengthBytes }, () => device.allocate(lengthBytes));
    const bytes = new Uint8Array(buffer, 0, lengthBytes);
    return this.register(operation, bytes, options.pz, privileges);
  }

  /**
   * Makes a shared receive queue (dat_srq_create): pass it to `createEndpoint`.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED when the provider has none (provider attribute
   * `srqSupported`); DAT_INVALID_PARAMETER; DAT_INVALID_HANDLE (pz);
   * DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_SRQ
   */
  createSrq(options: SrqOptions): Srq {
    const operation = 'ia.createSrq';
    this.begin(operation, { maxRecvDtos: options?.maxRecvDtos });
    const { device } = this.context;
    checkOptions(operation, 1, options, SRQ_OPTIONS);
    checkHandle(operation, Pz, 'PZ', options.pz, this.self);
    if (device.createSharedReceiveQueue === undefined) {
      throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
        operation,
        message: 'this provider has no shared receive queues',
        hint: 'ia.query().provider.srqSupported tells',
      });
    }
    const attributes = srqAttributes(operation, options, device.attributes);
    const { maxRecvDtos: maxWr, maxRecvIov: maxSge } = attributes;
    const context = { operation, value: maxWr, map: { ENOMEM: NO_SRQ } };
    const create = device.createSharedReceiveQueue.bind(device);
    const { pd } = options.pz;
    const srq = new Srq(this.self, options.pz, attributes, (onEvent) =>
      spiCall(context, () => create({ pd, maxWr, maxSge, onEvent })),
    );
    return this.adopt(srq);
  }

  private checkLmrOptions(operation: string, options: LmrOptions): number {
    checkOptions(operation, 5, options, ['pz', 'privileges']);
    checkHandle(operation, Pz, 'PZ', options.pz, this.self);
    const privileges = options.privileges ?? DEFAULT_PRIVILEGES;
    const expected = `a bit set of ${flagNames(MemPrivileges, PRIVILEGE_MASK)}`;
    checkBits(operation, 6, 'privileges', privileges, PRIVILEGE_MASK, expected);
    return privileges;
  }

  private register(operation: string, bytes: Uint8Array, pz: Pz, privileges: number): Lmr {
    const region = spiCall({ operation, value: bytes.byteLength, map: { ENOMEM: NO_REGION } }, () =>
      registerAtRandom(pz.pd, bytes, accessOf(privileges), this.context.random),
    );
    return this.adopt(new Lmr(this.self, pz, bytes, privileges, region));
  }
}

const { LOCAL_READ, LOCAL_WRITE } = MemPrivileges;
const DEFAULT_PRIVILEGES = LOCAL_READ | LOCAL_WRITE;
const NO_ZONE = ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_PROTECTION_DOMAIN'] as const;
const SRQ_OPTIONS = ['pz', 'maxRecvDtos', 'maxRecvIov', 'lowWatermark'];
const NO_SRQ = ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_SRQ'] as const;
const NO_REGION = ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_MEMORY_REGION'] as const;

function privilegesText(options: LmrOptions | undefined): Symbolic {
  return new Symbolic(flagNames(MemPrivileges, options?.privileges ?? DEFAULT_PRIVILEGES));
}

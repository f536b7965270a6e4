/** Base of all objects of a device: a number of the addon, until they are gone. */
import { SpiError } from '../../../core/spi/index.js';
import { check } from '../system/errno.js';
import type { OpenDevice } from './open-device.js';

export abstract class VerbsObject {
  /** 0 when destroyed: no call of the addon takes it. */
  private addonNumber = 0;

  constructor(
    readonly device: OpenDevice,
    private readonly kind: string,
  ) {}

  get number(): number {
    return this.addonNumber;
  }

  get destroyed(): boolean {
    return this.addonNumber === 0;
  }

  /** Again is nothing. @throws SpiError('EBUSY') while others need it */
  destroy(): void {
    if (this.addonNumber === 0) return;
    const [call, errno] = this.release(this.addonNumber);
    check(call, errno, errno === 0 ? undefined : `the ${this.kind} stays`);
    this.markDestroyed();
  }

  /** The device has gone, and everything with it. */
  markDestroyed(): void {
    const number = this.addonNumber;
    this.addonNumber = 0;
    this.device.objects.delete(this);
    if (number !== 0) this.onDestroyed(number);
  }

  /** @throws SpiError('EINVAL') when it cannot be a parent of an object of `device` */
  checkUsable(device: OpenDevice): void {
    if (this.device !== device)
      throw new SpiError('EINVAL', `the ${this.kind} is of another device`);
    if (this.destroyed) throw new SpiError('EINVAL', `the ${this.kind} is destroyed`);
  }

  protected created(number: number): void {
    this.addonNumber = number;
    this.device.objects.add(this);
  }

  /** Calls the library; its name and errno. */
  protected abstract release(number: number): [call: string, errno: number];

  protected onDestroyed(_number: number): void {}
}

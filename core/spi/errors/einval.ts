/** EINVAL, with the name and the limit: the error of providers and modules for an invalid value. */
import { mustBe } from '../checks/index.js';
import { SpiError } from './spi-error.js';

export function einval(name: string, value: unknown, expected: string): SpiError {
  return new SpiError('EINVAL', mustBe(name, value, expected));
}

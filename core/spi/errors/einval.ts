/** What providers and modules throw for a value that cannot be: EINVAL, its name and its limit. */
import { mustBe } from '../checks/index.js';
import { SpiError } from './spi-error.js';

export function einval(name: string, value: unknown, expected: string): SpiError {
  return new SpiError('EINVAL', mustBe(name, value, expected));
}

/** XRC Extended Transport Header, 4 bytes: the SRQ a request is for (IBTA annex A14). */
import { lower24 } from '../../../core/spi/wire/field.js';

/** XRC SRQ number on the responder, 24 bits. */
export const xrcethSrqn = lower24(0);

export function writeXrceth(view: DataView, offset: number, srqn: number): void {
  view.setUint32(offset, srqn & 0xffffff);
}

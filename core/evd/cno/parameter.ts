/** A CNO as a parameter. */
import { DatError } from '../../errors/index.js';
import { show } from '../../spi/checks/index.js';
import { Cno } from './cno.js';
import type { CnoHost } from './host.js';

/** @throws DatError DAT_INVALID_HANDLE unless null or a live CNO of the adapter */
export function checkCno(operation: string, cno: unknown, host: CnoHost): void {
  if (cno === null) return;
  const refuse = (message: string): DatError => {
    const subtype = 'DAT_INVALID_HANDLE_CNO';
    return new DatError('DAT_INVALID_HANDLE', { subtype, operation, message, value: cno });
  };
  if (!(cno instanceof Cno)) throw refuse(`cno is ${show(cno)}; it must be a Cno or null`);
  if (cno.isFreed) throw refuse(`cno ${cno.id} has been freed`);
  if (!cno.belongsTo(host)) throw refuse(`cno ${cno.id} belongs to another interface adapter`);
}

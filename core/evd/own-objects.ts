/** The types of the event dispatchers' own objects that events name. */
import type { Cno } from './cno/cno.js';
import type { Evd } from './evd.js';

declare module './events/event-objects.js' {
  interface EventObjects {
    readonly evd: Evd;
    readonly cno: Cno;
  }
}

/** The program of a channel: what it adds to a connection. */
import { acceptChannel, channel, offerChannel } from 'dapl/flow/channel';
import type { Way } from './promises.js';

export const CHANNEL: Way = {
  offer: () => offerChannel(),
  accept: () => acceptChannel(),
  link: (conn) => channel(conn),
};

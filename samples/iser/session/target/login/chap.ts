/**
 * CHAP by the side that is logged in to (RFC 7143, 12.1; RFC 1994): its steps as a table. The
 * initiator proves that it knows a secret; it may ask the target for the same.
 */
import { WireError } from '../../../wire/index.js';

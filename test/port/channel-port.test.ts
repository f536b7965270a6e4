import { describePacketPort } from 'dapl/testing';
import { fixture } from '../support/ports/channel.js';

describePacketPort('native port through shared memory', fixture);

// Properties that every run of the machine in sign-off.machine.mjs must have:
//
//   statewright properties examples/sign-off.machine.mjs examples/sign-off.properties.mjs
import { canReach, isFinal, leadsTo, until } from 'statewright/testing'

const isWaiting = ({ value }) => value.running === 'awaitingSignatures'

export const properties = {
  'a call waits until two people have signed it': until(
    isWaiting,
    (moment) => !isWaiting(moment) && (moment.event.type !== 'SIGN' || moment.context.signedBy.length === 2),
    { from: isWaiting, fair: ['xstate.after.*'] },
  ),
  'a waiting call is eventually decided': leadsTo(isWaiting, (moment) => !isWaiting(moment), {
    fair: ['xstate.after.*'],
  }),
  'an end is always reachable': canReach(isFinal),
}

// The machine from sign-off.machine.mjs with a mistake: one signature is enough.
//
//   statewright diff examples/sign-off.machine.mjs examples/hasty-sign-off.machine.mjs
import machine from './sign-off.machine.mjs'

export { alphabet, inputs } from './sign-off.machine.mjs'

export default machine.provide({ guards: { isLastSignature: () => true } })

// A process of a session whose payments start by a grant. It asks, gives the grant, continues, or revokes the grant. The
// task is JSON in the first argument.
import { createAgent } from 'statewright'
import { fileStore } from 'statewright/stores/file'
import { doomed, striker } from './faults.mjs'
import { createPayerModel, createPayTool, goOn, report } from './payer.mjs'

const { dir, fault, callIds, atOnce, idempotent, uses, action, revokeIn } = JSON.parse(process.argv[2])
const strike = striker(fault, dir)

async function revoke() {
  const { grants = [] } = await agent.replay('s')
  await agent.send('s', { type: 'revoke', grant: grants[0].id, by: 'bob' }).catch((error) => {
    if (error.code !== 'unknown_grant') throw error
  })
  strike('revoke', 'after')
}

const pay = createPayTool({
  dir,
  strike,
  onPaid: (callId) => (callId === revokeIn ? revoke() : undefined),
  needsApproval: true,
  idempotent,
})
const store = doomed(fileStore({ dir }), strike)
const agent = createAgent({
  model: createPayerModel(callIds, atOnce),
  store,
  tools: [pay],
  toolCalls: { concurrency: 1 },
})

const actions = {
  goOn: () => goOn(agent),
  revoke,
  /** The user of a killed process sends the grant again only if it was not stored. */
  async give() {
    if (store.inbox.read('s').length > 0) return
    await agent.send('s', { type: 'grant', tool: 'pay', when: {}, uses, by: 'bob' })
  },
}

report(actions[action]().then(() => store.close()))

// A process of the approvers of a payment. Each starts or resumes the session and approves, through a handle of the run
// or through the inbox. The task is JSON in the first argument, and the outcome goes back as a message.
import { createAgent } from 'statewright'
import { fileStore } from 'statewright/stores/file'
import { doomed, striker } from './faults.mjs'
import { createPayerModel, createPayTool, goOn, isDone, report } from './payer.mjs'

const { dir, fault, votes, needed } = JSON.parse(process.argv[2])
const callId = 'pay-1'

async function vote(agent, { by, via }) {
  const { run, result } = via === 'inbox' ? {} : await goOn(agent)
  const [question] = result?.pending ?? [{ callId }]
  if (!question) return
  try {
    if (via === 'inbox') await agent.send('s', { type: 'approve', callId, by })
    else {
      run.approve(question, undefined, { by })
      await run.result
    }
  } catch (error) {
    if (error.code === 'session_busy') await vote(agent, { by, via })
    else if (!isDone(error)) throw error
  }
}

async function main() {
  const strike = striker(fault, dir)
  const store = doomed(fileStore({ dir }), strike)
  const agent = createAgent({
    model: createPayerModel([callId]),
    store,
    tools: [createPayTool({ dir, strike, idempotent: true })],
    policy: { id: 'payments', decide: () => ({ decision: 'ask', approvers: { count: needed } }) },
  })
  if (votes.length === 0) await goOn(agent)
  for (const each of votes) await vote(agent, each)
  store.close()
}

report(main())

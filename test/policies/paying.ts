import { type AgentEvent, memoryStore, type Policy, type Principal } from '../../src/index.js'
import { stage } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'

/** The outcome of one call of `pay` under a policy: executed, waiting for approval, or denied by a rule. */
export async function pay(policy: Policy, input: object, by: Principal | undefined = { id: 'ann' }) {
  const paid: unknown[] = []
  const { agent } = await stage([call('pay', input), text('Done.')], {
    store: memoryStore(),
    tools: [tool('pay', (input) => void paid.push(input))],
    policy,
  })
  const run = agent.run('Pay.', {
    session: 'ann:7',
    ...(by.id !== '' && { by }),
    context: { secret: 'no' },
  } as never)
  const events: AgentEvent[] = []
  run.events$.subscribe((event) => events.push(event))
  const { pending } = await run.result
  const [decided] = events.flatMap((event) => (event.type === 'policy_decided' ? [event] : []))
  const outcome = paid.length > 0 ? 'runs' : pending ? 'asks' : 'denied'
  return { outcome, rule: decided?.rule, approvers: pending?.[0]?.approvers }
}

import { type AgentEvent, type Policy, type PolicyDecision, memoryStore } from '../../src/index.js'
import { stage } from '../support/play.js'
import { Recorded, withContextManager } from '../support/spans.js'
import { call, text, tool } from '../support/tools.js'

withContextManager()

const reason = 'Payments need a yes.'

/** A run with one call of `pay` that bob answers after a minute. */
async function answered(
  answer: 'approve' | 'reject' | 'nobody',
  {
    decision = { decision: 'ask', rule: 'all', reason },
    captureContent = false,
    ...more
  }: {
    decision?: PolicyDecision
    captureContent?: boolean
    shadow?: boolean
  } = {},
) {
  const recorded = new Recorded()
  const policy: Policy = { id: 'payments', decide: () => decision, ...more }
  let time = 1_000
  const { agent } = await stage([call('pay'), text('Done.')], {
    store: memoryStore(),
    tools: [tool('pay', () => 'paid')],
    policy,
    clock: { now: () => time, setTimeout: () => 0, clearTimeout: () => undefined },
    telemetry: recorded.otel({ captureContent }),
  })
  const run = agent.run('Pay.', { session: 's', by: 'ann' })
  const seen: AgentEvent[] = []
  run.events$.subscribe((event) => seen.push(event))
  const { pending = [] } = await run.result
  time += 60_000
  if (answer === 'approve') run.approve(pending[0]!, undefined, { by: 'bob', why: 'Checked.' })
  if (answer === 'reject') run.reject(pending[0]!, 'Too much.', { by: 'bob' })
  await run.result
  const spanEvents = recorded.named('invoke_agent').flatMap(({ events }) => events)
  const named = (name: string) =>
    spanEvents.flatMap((event) => (event.name === name ? [event.attributes] : []))
  const decided = seen.flatMap((event) => (event.type === 'approval_decided' ? [event] : []))
  return { recorded, named, decided, callId: pending[0]?.callId ?? 'call_1_1' }
}

/** The points of a metric: attributes and value. */
async function points(recorded: Recorded, name: string) {
  const metric = (await recorded.metrics())[name]
  return metric?.map(({ attributes, value }) => [attributes, value])
}

describe('approvals in telemetry', () => {
  it('are events of the run and of its span, and a count with their duration', async () => {
    const { recorded, named, decided, callId } = await answered('approve')
    expect(decided).toMatchObject([
      { callId, name: 'pay', outcome: 'approved', by: { id: 'bob' }, why: 'Checked.', waitedMs: 60_000 },
    ])
    const subject = { 'gen_ai.tool.name': 'pay', 'gen_ai.tool.call.id': callId }
    expect(named('statewright.approval.requested')).toEqual([subject])
    expect(named('statewright.approval.decided')).toEqual([
      { ...subject, 'statewright.approval.outcome': 'approved', 'statewright.approval.by': 'bob' },
    ])
    const ask = { 'statewright.policy.id': 'payments', 'statewright.policy.decision': 'ask' }
    expect(named('statewright.policy.decision')).toEqual([
      { ...subject, ...ask, 'statewright.policy.rule': 'all' },
    ])
    expect(await points(recorded, 'statewright.approvals')).toEqual([[{ outcome: 'approved' }, 1]])
    expect(await points(recorded, 'statewright.approval.wait.duration')).toEqual([
      [{ outcome: 'approved' }, 60],
    ])
    expect(await points(recorded, 'statewright.policy.decisions')).toEqual([
      [{ policy: 'payments', decision: 'ask', shadow: false }, 1],
    ])
  })

  it('contain reasons only with the content', async () => {
    for (const captureContent of [false, true]) {
      const { named, decided } = await answered('reject', { captureContent })
      expect(decided).toMatchObject([{ outcome: 'rejected', by: { id: 'bob' }, why: 'Too much.' }])
      const texts = ['requested', 'decided'].flatMap((name) =>
        named(`statewright.approval.${name}`).flatMap((attributes) => [
          attributes?.['statewright.approval.reason'] ?? attributes?.['statewright.approval.why'],
        ]),
      )
      expect(texts).toEqual(captureContent ? [reason, 'Too much.'] : [undefined, undefined])
      const [policy] = named('statewright.policy.decision')
      expect(policy?.['statewright.policy.reason']).toBe(captureContent ? reason : undefined)
    }
  })

  it('do not exist if a policy denies or only records', async () => {
    const denied = await answered('nobody', { decision: 'deny' })
    const recordedOnly = await answered('nobody', { decision: 'deny', shadow: true })
    for (const { recorded, decided } of [denied, recordedOnly]) {
      expect(decided).toEqual([])
      expect(await points(recorded, 'statewright.approvals')).toBeUndefined()
    }
    expect(recordedOnly.named('statewright.policy.decision')).toMatchObject([
      { 'statewright.policy.shadow': true, 'statewright.policy.decision': 'deny' },
    ])
  })
})

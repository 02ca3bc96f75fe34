// A person decides on a call. It runs once after an approval, and never after a denial.
import { calls, say } from '../frames.mjs'
import { resultsOf } from '../strict-history.mjs'

const remove = (id, path) => [id, 'remove', { path }]
const done = 'It is done.'

/** Runs up to the approval request. Each of these paths has one call that waits for a person. */
async function untilAsked({ serve, open, tool, check }, ...paths) {
  const lane = serve(
    Object.assign([calls(paths.map((path, at) => remove(`c${at}`, path)))], { otherwise: say(done) }),
  )
  const removing = { ...tool('remove', { path: 'string' }, ({ path }) => `removed ${path}`), asks: true }
  const tools = [removing]
  const conversation = open({ lane, tools })
  const { pending, ended } = await conversation.say('Go.')
  check(removing.runs.length === 0, `executed before a person was asked (${ended})`)
  // Some libraries request approval for one call after another.
  check(pending?.length > 0, `no person was asked (${ended})`)
  return { lane, tools, conversation, pending, runs: removing.runs }
}

const all = (pending, approved) => Object.fromEntries(pending.map(({ id }) => [id, approved]))

/** The result of an answer, or the reason for its rejection. */
async function ending(answer) {
  try {
    return (await answer()).ended
  } catch (error) {
    return `${error?.name}: ${error?.message}`
  }
}

/**
 * Answers all pending approvals at once, here or in another process's conversation. Returns the result, or the reason for its
 * rejection.
 */
const decide = ({ settles }, { conversation, pending }, approved, by = conversation) =>
  settles(
    ending(() => by.answer(all(pending, approved))),
    20_000,
  )

/** A strict provider has accepted every request. */
const checkHistory = ({ check }, { refused }) =>
  check(refused.length === 0, `a strict provider refuses it: ${refused[0]}`)

const approvals = (name, title, mistake, run, needs = []) => ({
  class: 'approvals',
  name,
  title,
  mistake,
  needs: ['approvals', ...needs],
  run,
})

/** The executed calls, after the run has become quiet. */
async function executed({ lane, runs }) {
  await lane.quiet()
  return runs.map(({ path }) => path).join(', ')
}

export default [
  approvals(
    'approved',
    'An approved call is executed once, after the approval',
    'neverAsks',
    async (world) => {
      const { check } = world
      const scene = await untilAsked(world, 'a')
      const ended = await decide(world, scene, true)
      const ran = await executed(scene)
      check(ran === 'a', `executed: ${ran || 'nothing'} (${ended})`)
      const results = resultsOf(scene.lane.requests[1]?.messages ?? [])
      check(results.length === 1, `the next request has ${results.length} results (${ended})`)
      checkHistory(world, scene.lane)
    },
  ),
  approvals(
    'refused',
    'A rejected call is never executed, and the model gets a result',
    'runsRefused',
    async (world) => {
      const { check } = world
      const scene = await untilAsked(world, 'a')
      const ended = await decide(world, scene, false)
      const ran = await executed(scene)
      check(ran === '', `executed: ${ran} (${ended})`)
      checkHistory(world, scene.lane)
      return ended
    },
  ),
  approvals(
    'one-of-two',
    'If only one of two calls is approved, the other never runs',
    'runsRefused',
    async (world) => {
      const { check, settles } = world
      const scene = await untilAsked(world, 'a', 'b')
      let { pending } = scene
      let ended
      const seen = new Set()
      while (pending?.length > 0) {
        for (const { id } of pending) seen.add(id)
        const decisions = Object.fromEntries(pending.map(({ id }) => [id, id === 'c0']))
        ;({ pending, ended } = await settles(scene.conversation.answer(decisions), 20_000))
      }
      check(seen.size === 2, `a person was asked only about ${[...seen].join()} (${ended})`)
      const ran = await executed(scene)
      check(ran === 'a', `executed: ${ran || 'nothing'} (${ended})`)
      checkHistory(world, scene.lane)
    },
  ),
  approvals(
    'twice',
    'A call that is approved twice at the same time is executed once',
    'answersTwice',
    async (world) => {
      const { check } = world
      const scene = await untilAsked(world, 'a')
      const ends = await Promise.all([decide(world, scene, true), decide(world, scene, true)])
      const ran = await executed(scene)
      check(ran === 'a', `executed: ${ran || 'nothing'} (${ends.join('; ')})`)
      return ends.join('; ')
    },
  ),
  approvals(
    'again',
    'If the model repeats an approved call, a person is asked again',
    'keepsDecisions',
    async (world) => {
      const { serve, open, tool, check, settles } = world
      const lane = serve([calls([remove('c0', 'a')]), calls([remove('c1', 'a')]), say(done)])
      const removing = { ...tool('remove', { path: 'string' }, ({ path }) => `removed ${path}`), asks: true }
      const conversation = open({ lane, tools: [removing] })
      const rest = await settles(conversation.say('Go.'), 20_000)
      check(rest.pending?.length > 0, `no person was asked (${rest.ended})`)
      const again = await settles(conversation.answer(all(rest.pending, true)), 20_000)
      check(
        removing.runs.length === 1,
        `executed ${removing.runs.length} times by one approval (${again.ended})`,
      )
      check(again.pending?.length > 0, `of the second call no person was asked (${again.ended})`)
      const last = await settles(conversation.answer(all(again.pending, false)), 20_000)
      await lane.quiet()
      check(removing.runs.length === 1, `executed ${removing.runs.length} times (${last.ended})`)
      check(last.text === done, `the text ${JSON.stringify(last.text)} (${last.ended})`)
      checkHistory(world, lane)
    },
  ),
  approvals(
    'late',
    'A call that is approved after a rejection is never executed',
    'answersTwice',
    async (world) => {
      const { check } = world
      const scene = await untilAsked(world, 'a')
      const first = await decide(world, scene, false)
      const second = await decide(world, scene, true)
      const ran = await executed(scene)
      check(ran === '', `executed: ${ran} (${first}; ${second})`)
      return second
    },
  ),
  approvals(
    'after-death',
    'A call that another process approves from the stored state is executed once',
    'forgetsState',
    async (world) => {
      const { check, open } = world
      const scene = await untilAsked(world, 'a')
      const saved = await scene.conversation.save()
      const next = open({ lane: scene.lane, tools: scene.tools, saved })
      const ended = await decide(world, scene, true, next)
      const ran = await executed(scene)
      check(ran === 'a', `executed: ${ran || 'nothing'} (${ended})`)
      checkHistory(world, scene.lane)
    },
    ['savedApprovals'],
  ),
  approvals(
    'both-ways',
    'The stored state is read twice, approved in one copy and rejected in the other. Each continues with its own decision',
    'sharesDecisions',
    async (world) => {
      const { check, open } = world
      const scene = await untilAsked(world, 'a')
      const saved = await scene.conversation.save()
      const before = scene.lane.requests.length
      const decideOn = (approved) =>
        decide(world, scene, approved, open({ lane: scene.lane, tools: scene.tools, saved }))
      const ends = [await decideOn(false)]
      check((await executed(scene)) === '', `executed though it was refused (${ends[0]})`)
      ends.push(await decideOn(true))
      const ran = await executed(scene)
      check(ran === 'a', `executed: ${ran || 'nothing'} (${ends.join('; ')})`)
      checkHistory(world, scene.lane)
      const [refused, approved] = scene.lane.requests.slice(before).map(({ messages }) => messages)
      const isSame = JSON.stringify(refused?.slice(0, -1)) === JSON.stringify(approved?.slice(0, -1))
      check(isSame, `what both had before the decision differs: ${JSON.stringify([refused, approved])}`)
    },
    ['savedApprovals'],
  ),
  approvals(
    'altered',
    'A call whose stored arguments differ from the displayed arguments is not executed',
    'trustsState',
    async (world) => {
      const { check, settles, open, certify } = world
      const scene = await untilAsked(world, 'seen-by-the-person')
      const saved = await scene.conversation.save()
      const altered = saved.replaceAll('seen-by-the-person', 'seen-by-no-person!')
      if (altered !== saved) scene.lane.faults.push('altered')
      certify(scene.lane, 'altered')
      const ended = await settles(
        ending(() =>
          open({ lane: scene.lane, tools: scene.tools, saved: altered }).answer(all(scene.pending, true)),
        ),
        20_000,
      )
      const ran = await executed(scene)
      check(!ran.includes('no-person'), `executed: ${ran} (${ended})`)
      return ended
    },
    ['savedApprovals'],
  ),
]

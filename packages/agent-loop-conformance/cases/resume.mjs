// A process dies by SIGKILL before or after each of its writes, and another process continues. Tests the properties of "Resume Means
// Resume" (arXiv:2608.03836) that a loop alone can provide.
import { fork } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { calls, say } from '../frames.mjs'
import { resultsOf, usersOf } from '../strict-history.mjs'

const child = fileURLToPath(new URL('../resume-child.mjs', import.meta.url))
const mostWrites = 40
const end = 'Both are sent.'
const sent = ['ada', 'ben']

/** Two calls, then an answer. The model derives its step from the messages, so that another process can continue. */
function answer({ messages }) {
  const turn = messages.filter(({ role }) => role === 'assistant').length
  const call = (at) => [`c${at}`, 'send', { to: sent[at] }]
  return turn === 0 ? calls([call(0), call(1)]) : say(end)
}

/** Runs one process to its end. Returns its messages, or the signal that killed it. */
async function runProcess(options) {
  const started = fork(child, [JSON.stringify(options)], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let outcome
  let printed = ''
  started.stderr.on('data', (data) => (printed = (printed + data).slice(-300)))
  started.on('message', (message) => (outcome = message))
  const signal = await new Promise((resolve) => started.once('close', (_, by) => resolve(by)))
  return {
    signal,
    outcome: outcome ?? { text: '', ok: false, ended: `the process ended: ${printed.trim()}` },
  }
}

/**
 * The outcome of a session whose process died at a write, such as `before 3` or `after 3`. Null when there is no such write. With
 * `asks`, an earlier process has reached the approval request, the dying process delivers the answer, and the continuing process
 * answers the remaining requests.
 */
async function dieAt({ serve, stored, check }, killAt, asks) {
  const folder = mkdtempSync(join(tmpdir(), 'conformance-'))
  const lane = serve(Object.assign([], { otherwise: answer }))
  const options = {
    ...stored,
    baseURL: lane.baseURL,
    folder,
    ...(asks && { asks, goesOn: true, approves: true }),
  }
  const readEffects = () => {
    const file = join(folder, 'effects')
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').filter(Boolean) : []
  }
  try {
    if (asks) {
      const { outcome } = await runProcess({ ...options, goesOn: false, approves: false })
      check(outcome.asked > 0, `no person was asked (${outcome.ended})`)
      check(readEffects().length === 0, 'executed before a person was asked')
    }
    const { signal, outcome: whole } = await runProcess({ ...options, killAt })
    if (killAt === 'never') return { outcome: whole }
    if (signal !== 'SIGKILL') return null
    const before = lane.requests.length
    const { outcome } = await runProcess({ ...options, goesOn: true })
    return { killAt, effects: readEffects(), outcome, before, requests: lane.requests, refused: lane.refused }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const sweeps = new Map()

/** The deaths after every write, computed once for all cases of a library because a process starts slowly. */
function sweep(world, asks = false) {
  const key = JSON.stringify([world.stored, asks])
  const known = sweeps.get(key) ?? playDeaths(world, asks)
  sweeps.set(key, known)
  return known
}

async function playDeaths(world, asks) {
  const whole = await dieAt(world, 'never', asks)
  world.check(
    whole.outcome.ok && whole.outcome.text === end,
    `without a death it ended ${whole.outcome.ended}`,
  )
  const deaths = []
  for (let write = 1; write <= mostWrites; write++) {
    const both = await Promise.all([
      dieAt(world, `before ${write}`, asks),
      dieAt(world, `after ${write}`, asks),
    ])
    if (both.includes(null)) break
    deaths.push(...both)
  }
  return deaths
}

const resume = (name, title, mistake, judge, { needs = [], asks = false } = {}) => ({
  class: 'resume',
  name,
  title,
  mistake,
  needs: ['resume', ...needs],
  alone: true,
  withinMs: 240_000,
  async run(world) {
    const deaths = await sweep(world, asks)
    world.certifySo(deaths.length >= (asks ? 4 : 6), `the process died only ${deaths.length} times`)
    for (const death of deaths) {
      const problem = judge(death, world.lacks)
      world.check(!problem, `killed ${death.killAt}: ${problem}`)
    }
    return `killed before and after each of ${deaths.length / 2} writes`
  },
})

/** Whether a request's messages extend the messages of an earlier request. */
const continues = (earlier, later) =>
  earlier.messages.every((message, at) => message.role === later.messages[at]?.role) &&
  later.messages.length >= earlier.messages.length

function findTwice({ effects, outcome }) {
  const twice = effects.find((to, at) => effects.indexOf(to) !== at)
  return twice && `sent to ${twice} ${effects.filter((to) => to === twice).length} times (${outcome.ended})`
}

const findOtherEnd = ({ outcome }) =>
  outcome.ok && outcome.text === end ? undefined : `${JSON.stringify(outcome.text)} (${outcome.ended})`

/** A model that reads a file, and answers with the last user message. */
function echo({ messages }) {
  if (messages.at(-1).role === 'tool') return say('It is read.')
  return usersOf(messages).length === 1
    ? calls([['c0', 'read', { path: 'a' }]])
    : say(usersOf(messages).at(-1))
}

export default [
  resume('effect-once', 'After a kill at each write, no effect happens twice', 'repeatsEffects', findTwice, {
    needs: ['effectOnce'],
  }),
  resume(
    'decision',
    'The process that delivers an approval is killed at each write. The call runs once, and the run ends',
    'repeatsEffects',
    (death, { effectOnce: repeats }) => (repeats ? undefined : findTwice(death)) ?? findOtherEnd(death),
    { needs: ['approvals', 'storedDecisions'], asks: true },
  ),
  {
    class: 'resume',
    name: 'forks',
    title: 'Two forks at the same point send the same request, and their messages stay separate',
    mistake: 'sharesForks',
    needs: ['forks'],
    async run({ serve, open, tool, check, settles }) {
      const lane = serve(Object.assign([], { otherwise: echo }))
      const conversation = open({ lane, tools: [tool('read', { path: 'string' }, () => 'A text.')] })
      const first = await settles(conversation.say('Go.'), 20_000)
      check(first.text === 'It is read.', `before the fork: ${JSON.stringify(first.text)} (${first.ended})`)
      const forks = [await conversation.fork(), await conversation.fork()]
      const before = lane.requests.length
      for (const [fork, text] of [
        [forks[0], 'Left?'],
        [forks[1], 'Left?'],
        [conversation, 'On?'],
      ]) {
        const outcome = await settles(fork.say(text), 20_000)
        check(
          outcome.text === text,
          `${text} was answered by ${JSON.stringify(outcome.text)} (${outcome.ended})`,
        )
      }
      const [one, other, own] = lane.requests.slice(before).map(({ messages }) => messages)
      check(
        JSON.stringify(one) === JSON.stringify(other),
        `two forks at one point send ${JSON.stringify([one, other])}`,
      )
      check(resultsOf(one).length === 1, `the request of a fork has ${resultsOf(one).length} results`)
      check(
        usersOf(own).join(' ') === 'Go. On?',
        `after the forks, the user has said ${usersOf(own).join(' ')}`,
      )
      check(lane.refused.length === 0, `a strict provider refuses it: ${lane.refused[0]}`)
    },
  },
  resume(
    'prefix',
    'After a kill at each write, no later request has less history than an earlier one',
    'startsAnew',
    ({ requests, before, outcome }) => {
      const last = requests[before - 1]
      const shorter = last && requests.slice(before).find((later) => !continues(last, later))
      return shorter && `${shorter.messages.length} messages after ${last.messages.length} (${outcome.ended})`
    },
  ),
  resume(
    'valid',
    'After a kill at each write, a strict provider accepts every request',
    'leavesCallsOpen',
    ({ refused }) => refused[0],
  ),
  resume('same-end', 'After a kill at each write, the run reaches the same end', 'endsAtDeath', findOtherEnd),
]

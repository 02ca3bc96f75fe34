/** The rehearsal's model. Each answer depends on the last result, so that a new process can continue. */
import { startRehearsal } from 'statewright/rehearsal'

const fixed = `  const parts = [...text.matchAll(/(\\d+)([smh])/g)]
  if (parts.length === 0) throw new Error(\`'\${text}' is not a duration.\`)
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * units[unit], 0)`
const strict = "  if (!/^(\\d+[smh])+$/.test(text)) throw new Error(`'${text}' is not a duration.`)"
const todo = ['read issue 12', 'reproduce the bug', 'fix it', 'get a review', 'comment on the issue']
const plan = (done) => ['plan', { done: todo.slice(0, done), next: todo.slice(done) }]
const says = (text, ...calls) => ({ text, calls })

const coder = [
  says('First I look up the issue.', plan(0), ['tool_search', { query: 'read an issue, comment' }]),
  says('', ['issues_read_issue', { number: 12 }], ['load_skill', { name: 'fix-a-bug' }]),
  says(
    'It is a bug. I will read the code and its tests.',
    plan(1),
    ['list_files', {}],
    ['read_file', { file: 'src/duration.mjs' }],
    ['read_file', { file: 'test/duration.test.mjs' }],
  ),
  says('The test with several units should fail.', ['run_tests', {}]),
  says('It does, because only the first unit counts. I will add up all units.', plan(2), [
    'edit_file',
    {
      file: 'src/duration.mjs',
      old: `  const match = /(\\d+)([smh])/.exec(text)
  if (match === null) throw new Error(\`'\${text}' is not a duration.\`)
  return Number(match[1]) * units[match[2]]`,
      new: fixed,
    },
  ]),
  says('', ['run_tests', {}]),
  says('All tests pass. I will request a review.', plan(3), [
    'review',
    { task: 'Review src/duration.mjs. It now adds up 1h30m.' },
  ]),
  says('That is right. The rest of the text is ignored. I will reject it.', [
    'edit_file',
    {
      file: 'src/duration.mjs',
      old: fixed.split('\n')[1],
      new: strict,
    },
  ]),
  says('', ['run_tests', {}]),
  says('Done. I will comment on the issue.', plan(4), [
    'issues_comment',
    {
      number: 12,
      text: 'Only the first unit was read. Now all units are added up, and any other text is rejected.',
    },
  ]),
  says('Issue 12 is fixed: `1h30m` is 5400000, and `1h foo` is rejected. All tests pass.', plan(5)),
  says('You can close issue 12.'),
]
const reviewer = [
  says('', ['read_file', { file: 'src/duration.mjs' }]),
  says('The sum is correct, but `1h foo` is accepted. Check the whole text.'),
]
const notes =
  'The user wants issue 12 fixed: parseDuration("1h30m") in src/duration.mjs ignores the minutes. The issue is read, the ' +
  'skill fix-a-bug is loaded, and test/duration.test.mjs has a test for it.'

/** At reading speed on a terminal. */
const pace = process.stdout.isTTY ? { chunkSize: 6, chunkDelayMs: 12 } : {}

/** Plays steps. Each call id contains its step number. */
const play =
  (steps) =>
  ({ body }) => {
    if (!body.tools?.length) return { text: notes }
    const result = body.messages.findLast(({ role }) => role === 'tool')
    if (result?.content.startsWith('Rejected by the user'))
      return {
        ...pace,
        text: 'I will stop here. A real model would follow your instruction, but this script cannot.',
      }
    const at = Number(result?.tool_call_id.split('-')[1] ?? 0)
    if (at === steps.length - 1 && body.messages.at(-1).role === 'user')
      return { ...pace, text: 'This script knows only issue 12. Another task needs --model and a key.' }
    const { text, calls } = steps[at]
    const toolCalls = calls.map(([name, args], index) => ({
      id: `step-${at + 1}-${index}`,
      name,
      arguments: args,
    }))
    return { ...pace, text, toolCalls }
  }

/** Starts the server for both models. */
export function startModels() {
  const turns = (steps) => ({ turns: [play(steps)], onExhausted: 'repeatLast' })
  return startRehearsal({ scenarios: { coder: turns(coder), reviewer: turns(reviewer) } })
}

import * as fc from 'fast-check'
import type { AgentEvent, EmittedEvent, StepCompleted } from '../../../machines/agent/announcements.js'
import { noUsage } from '../../../machines/agent/usage.js'
import { createEventFormatter, type EventFormatterOptions, patternShield } from '../../../src/index.js'
import { memory } from '../../../src/memory/index.js'
import { stage } from '../../support/play.js'
import { call, text, tool } from '../../support/tools.js'
import { unicodeText } from '../../support/unicode-text.js'

function stamped(announcement: EmittedEvent, seq: number): AgentEvent {
  return { ...announcement, id: `r:${seq}`, runId: 'r', seq, at: 1_000 + seq * 100 }
}

function shown(announcements: readonly EmittedEvent[], options: EventFormatterOptions = {}): string {
  const format = createEventFormatter(options)
  return announcements.map((announcement, i) => format(stamped(announcement, i))).join('')
}

const says = (words: string, finished = false): EmittedEvent => ({
  type: 'stream_chunk',
  stepId: 's1',
  attempt: 1,
  text: words,
  finished,
})
const usage = { ...noUsage, inputTokens: 1_200, outputTokens: 34, totalTokens: 1_234, cost: 0.0123 }
const thought = (more: Partial<Pick<StepCompleted, 'outcome'>> = {}): EmittedEvent => ({
  type: 'step_completed',
  stepType: 'inference',
  stepId: 's1',
  attempt: 1,
  startedAt: 0,
  completedAt: 1_500,
  outcome: 'ok',
  payload: {
    modelResponse: more.outcome
      ? null
      : { text: 'Hi', toolCalls: [], finishReason: 'stop', model: null, usage },
  },
  ...more,
})
const ended: EmittedEvent = { type: 'run_ended', state: 'COMPLETED', reason: 'end_turn' }

test('a run is shown from the prompt to its totals', async () => {
  const play = await stage(
    [call('look', { in: 'leave.md' }, { text: 'Let me see.' }), text('Thirty days.')],
    {
      shields: { input: [patternShield({ name: 'hide', patterns: [/4711/g], action: 'redact' })] },
      memory: memory({ documents: [{ source: 'leave.md', text: 'Thirty days of leave.' }] }),
      tools: [
        tool('look', () => {
          play.clock.increment(1_500)
          return 'Thirty.\nNo more.'
        }),
      ],
    },
  )
  const run = play.run('How many days of leave has 4711?')
  await run.end(2)
  const format = createEventFormatter()
  const lines = run.events.map(format).join('').split('\n')
  const tokens = /◷ inference 0 ms, \d+ tokens$/
  expect(lines).toEqual([
    '● RUNNING',
    '  ◷ shields (input) 0 ms',
    expect.stringMatching(/^⚑ hide \(redact input\)/),
    '> How many days of leave has [redacted pattern 1]?',
    '  ◷ memory 0 ms',
    '  ◇ memory  1 found: leave.md',
    'Let me see.',
    expect.stringMatching(tokens),
    '  → look(in: "leave.md")',
    '● WAITING_FOR_TOOL',
    '  ✓ look 1.5 s  Thirty. …',
    '● RUNNING',
    'Thirty days.',
    expect.stringMatching(tokens),
    '',
    'COMPLETED · end_turn',
    '  steps   2',
    expect.stringMatching(/^ {2}tokens {2}[\d,]+ \([\d,]+ in, [\d,]+ out\)$/),
    '  cost    unknown (no price for this model)',
    '  time    1.5 s',
    '',
  ])
})

describe('steps', () => {
  test('show their duration and cost', () => {
    expect(shown([thought()])).toBe('  ◷ inference 1.5 s, 1,234 tokens\n')
    expect(shown([thought({ outcome: 'error' }), thought({ outcome: 'cancelled' })])).toBe(
      '  ◷ inference failed after 1.5 s\n  ◷ inference stopped after 1.5 s\n',
    )
    expect(
      shown([
        {
          type: 'step_completed',
          stepType: 'shield_call',
          stepId: 's1.output',
          point: 'output',
          startedAt: 0,
          completedAt: 12,
          outcome: 'ok',
          payload: { violation: null },
        },
      ]),
    ).toBe('  ◷ shields (output) 12 ms\n')
  })

  test('are counted, but not shown in detail, without timings', () => {
    const out = shown([thought(), ended], { timings: false })
    expect(out).not.toContain('◷')
    expect(out).toContain('  steps   1\n')
  })

  test('name the tools that the provider runs', () => {
    const hosted = {
      type: 'step_completed',
      stepType: 'hosted',
      stepId: 'r.s1.hosted.1',
      name: 'web_search',
      startedAt: 0,
      completedAt: 200,
      outcome: 'ok',
      payload: { item: null },
    } as const
    expect(shown([hosted])).toBe('  ◷ web_search 200 ms\n')
  })

  test('never split a text: the line follows the end of the text', () => {
    expect(shown([says('Hel'), thought(), says('lo'), says('', true)])).toBe(
      'Hello\n  ◷ inference 1.5 s, 1,234 tokens\n',
    )
  })
})

test('the end counts accepted answers, not failed attempts or summaries', () => {
  const summed: EmittedEvent = {
    ...(thought() as Extract<EmittedEvent, { stepType: 'inference' }>),
    summary: true,
  } as EmittedEvent
  const used = { ...usage, cachedInputTokens: 900 }
  const run = { type: 'usage' as const, stepId: 's1', step: used, run: used, session: used }
  expect(shown([thought({ outcome: 'error' }), summed, thought(), run, ended], { timings: false })).toBe(
    [
      '',
      'COMPLETED · end_turn',
      '  steps   1',
      '  tokens  1,234 (1,200 in, 75% of it cached, 34 out)',
      '  cost    $0.0123',
      '  time    400 ms',
      '',
    ].join('\n'),
  )
})

test('the actions of a sub-agent follow its name, and its text is left out', () => {
  const child = (event: EmittedEvent, ...path: string[]): EmittedEvent => ({
    type: 'child_event',
    callId: 'c',
    path,
    event: stamped(event, 0),
  })
  const calls: EmittedEvent = {
    type: 'tool_call',
    stepId: 's',
    call: { id: 'c', type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } },
  }
  expect(
    shown([
      child(says('Secretly.'), 'help'),
      child(ended, 'help'),
      child({ type: 'state_changed', from: null, to: 'RUNNING', reason: null }, 'help'),
      child(calls, 'help', 'search'),
      child({ type: 'error', code: 'timeout', message: 'Too long.', recoverable: true }, 'help'),
    ]),
  ).toBe('  help › search › → read(path: "a")\n  help › ✗ timeout  Too long.\n')
})

test('an approval request names the owner of the call', () => {
  const asks: EmittedEvent = {
    type: 'approval_requested',
    callId: 'c1/c2',
    name: 'send',
    arguments: '{}',
    fingerprint: 'f',
    path: ['help'],
  }
  expect(shown([asks])).toBe('? approval  help › send() needs approval (call c1/c2)\n')
})

test('a fitted context is shown', () => {
  expect(
    shown([{ type: 'context_fitted', strategy: 'compact', before: 9_000, after: 4_000, dropped: 12 }]),
  ).toBe('  ◇ context  9,000 → 4,000 tokens, 12 messages omitted (compact)\n')
})

test('the active agent and changed settings of a step are shown', () => {
  expect(shown([{ type: 'handed_off', callId: 'c', from: null, to: 'billing\u001b[2J' }])).toBe(
    '  ⇒ billing[2J speaks\n',
  )
  expect(
    shown([
      {
        type: 'step_prepared',
        stepId: 's',
        changes: ['model', 'tools', 'messages'],
        model: 'small',
        tools: [],
      },
    ]),
  ).toBe('  ◇ step  prepared: model small; no tools; messages\n')
})

test.each([0, -1, Number.NaN, 1, 40, Infinity])(
  'a width of %p truncates nothing to an empty text',
  (width) => {
    const progress: EmittedEvent = {
      type: 'tool_progress',
      callId: 'c',
      name: 'read',
      progress: 'x'.repeat(30),
    }
    const out = shown([progress], { width })
    expect(out).toContain('read: xxxx')
    expect(out.endsWith('…\n')).toBe(width !== Infinity)
  },
)

test('text of models, tools, shields and memory contains no control character, and only our own colors', () => {
  const ours = new RegExp(String.raw`\u001b\[(?:1|2|22|3[1236]|39)m`, 'g')
  fc.assert(
    fc.property(fc.array(unicodeText()), fc.boolean(), (texts, color) => {
      const all = texts.flatMap((words): EmittedEvent[] => [
        says(words),
        { type: 'error', code: words, message: words, recoverable: false },
        { type: 'tool_progress', callId: words, name: words, progress: { [words]: words } },
        { type: 'tool_result', callId: 'c', name: words, status: 'error', content: words, durationMs: 0 },
        { type: 'memory', query: words, snippets: [{ source: words, text: words }] },
        { type: 'shield', point: 'input', shield: words, action: 'warn', message: words, durationMs: 0 },
        {
          type: 'approval_requested',
          callId: words,
          name: words,
          arguments: words,
          fingerprint: words,
          path: [words],
        },
        {
          type: 'child_event',
          callId: words,
          path: [words],
          event: stamped({ type: 'warning', code: words, message: words }, 0),
        },
      ])
      const out = shown([...all, says('', true)], { color })
      expect(color ? out.replaceAll(ours, '') : out).not.toMatch(
        /[^\P{Cc}\t\n]|[\u202a-\u202e\u2066-\u2069]/u,
      )
    }),
  )
})

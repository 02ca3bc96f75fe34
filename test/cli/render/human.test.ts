import * as fc from 'fast-check'
import type { AgentEvent, EmittedEvent } from '../../../machines/agent/announcements.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import { noUsage } from '../../../machines/agent/usage.js'
import { createHumanRenderer } from '../../../src/cli/renderer.js'
import { wantsColor } from '../../../src/cli/output.js'
import { defaultConfig } from '../../../src/core/config/defaults.js'
import { unicodeText } from '../../support/unicode-text.js'

const { limits } = defaultConfig

function shown(
  announcements: readonly EmittedEvent[],
  options: { color?: boolean; width?: number } = {},
): string {
  const renderer = createHumanRenderer({ color: false, limits, ...options })
  return announcements.map((announcement, i) => renderer.renderEvent(stamped(announcement, i))).join('')
}

function stamped(announcement: EmittedEvent, seq: number): AgentEvent {
  return { ...announcement, id: `r:${seq}`, runId: 'r', seq, at: 1_000 + seq * 100 }
}

const says = (
  text: string,
  more: Partial<Extract<EmittedEvent, { type: 'stream_chunk' }>> = {},
): EmittedEvent => ({
  type: 'stream_chunk',
  stepId: 's1',
  attempt: 1,
  text,
  finished: false,
  ...more,
})
const answers = (content: string, stepId = 's1'): EmittedEvent => ({
  type: 'assistant_message',
  stepId,
  message: { id: 'm', createdAt: 0, role: 'assistant', content },
})
const change = (to: 'RUNNING' | 'PAUSED' | 'COMPLETED'): EmittedEvent => ({
  type: 'state_changed',
  from: null,
  to,
  reason: to === 'PAUSED' ? 'paused' : null,
})
const warns: EmittedEvent = { type: 'warning', code: 'w', message: 'Careful.' }

describe('a run for people', () => {
  test('shows streamed text as it arrives, and anything else on a separate line', () => {
    expect(shown([says('Hel'), says('lo'), warns])).toBe('Hello\n! w  Careful.\n')
    expect(shown([says('Hello\n'), says('', { finished: true }), warns])).toBe('Hello\n! w  Careful.\n')
  })

  test('shows an answer once, streamed or whole', () => {
    expect(shown([says('Hello'), says('', { finished: true }), answers('Hello')])).toBe('Hello\n')
    expect(shown([answers('Hello')])).toBe('Hello\n')
    expect(shown([answers('One'), answers('Two', 's2')])).toBe('One\nTwo\n')
  })

  test('marks the text of a failed attempt as retracted, but only if some was shown', () => {
    const reset = says('Hello', { attempt: 2, reset: true })
    expect(shown([says('Hel'), says('', { finished: true }), reset])).toMatch(
      /^Hel\n↻ .* discarded.*\nHello$/,
    )
    expect(shown([says('', { finished: true }), reset])).toBe('Hello')
  })

  test('separates reasoning from the answer', () => {
    const thinks = says('', { reasoning: 'hm' })
    expect(shown([thinks, thinks, says('Yes')])).toBe('hmhm\nYes')
    expect(shown([thinks], { color: true })).toBe('\u001b[2mhm\u001b[22m')
  })

  test('shows a tool call with its arguments, then its outcome', () => {
    const call: EmittedEvent = {
      type: 'tool_call',
      stepId: 's1',
      call: { id: 'c', type: 'function', function: { name: 'read', arguments: '{"path":"a.txt"}' } },
    }
    const result = { type: 'tool_result', callId: 'c', name: 'read', durationMs: 1_500 } as const
    const ok: EmittedEvent = { ...result, status: 'ok', content: '\nfirst\nsecond' }
    const failed: EmittedEvent = { ...result, status: 'timeout', content: 'Too slow.', truncated: true }
    expect(shown([call, ok, failed])).toBe(
      '  → read(path: "a.txt")\n  ✓ read 1.5 s  first …\n  ✗ timeout read 1.5 s (cut)  Too slow.\n',
    )
  })

  test('shows no duration for a call that did not run', () => {
    const result = { type: 'tool_result', callId: 'c', name: 'read', content: 'Rejected.' } as const
    expect(shown([{ ...result, status: 'rejected', durationMs: 0 }])).toBe('  ✗ rejected read  Rejected.\n')
    expect(shown([{ ...result, status: 'ok', durationMs: 0 }])).toBe('  ✓ read 0 ms  Rejected.\n')
  })

  test('shows the delay of a retry', () => {
    const retry: EmittedEvent = {
      type: 'retry',
      stepId: 's1',
      attempt: 2,
      delayMs: 1_000,
      code: 'rate_limit',
      message: 'Too many requests.',
    }
    expect(shown([retry])).toBe('↻ rate_limit  Too many requests; waiting 1.0 s before attempt 2\n')
  })

  test('shows transient states and rests, and leaves the final one to the summary', () => {
    expect(shown([change('RUNNING'), change('PAUSED'), change('COMPLETED')])).toBe(
      '● RUNNING\n● PAUSED  paused\n',
    )
  })

  test('shows guardrails, budget, approvals and errors', () => {
    expect(
      shown([
        { type: 'guardrail', guard: 'cycle', action: 'nudge', evidence: 'e', message: 'Going in circles.' },
        { type: 'budget_warning', message: 'Nearly spent.', remainingTokens: 1, remainingCost: null },
        { type: 'approval_requested', callId: 'c1', name: 'send', arguments: '{"to":"x"}', fingerprint: 'f' },
        { type: 'error', code: 'timeout', message: 'Too long.', recoverable: true },
      ]),
    ).toBe('⚑ cycle (nudge)  Going in circles.\n! budget  Nearly spent.\n✗ timeout  Too long.\n')
  })

  test('leaves the call of a sub-agent to the question that shows it, and shows calls without approval', () => {
    const calls = (id: string, name: string): EmittedEvent => ({
      type: 'tool_call',
      stepId: 's1',
      call: { id, type: 'function', function: { name, arguments: '{}' } },
    })
    const inChild = (event: EmittedEvent, seq: number): EmittedEvent => ({
      type: 'child_event',
      callId: 'c1',
      path: ['write'],
      event: stamped(event, seq),
    })
    const result = { type: 'tool_result', status: 'ok', durationMs: 5 } as const
    const asks: EmittedEvent = {
      type: 'approval_requested',
      callId: 'c3',
      name: 'save',
      arguments: '{}',
      fingerprint: 'f',
    }
    const events = [
      calls('c1', 'write'),
      inChild(calls('c2', 'look'), 1),
      inChild({ ...result, callId: 'c2', name: 'look', content: 'seen' }, 2),
      inChild(calls('c3', 'save'), 3),
      inChild(asks, 4),
      inChild({ ...result, callId: 'c3', name: 'save', content: 'saved' }, 5),
    ]
    expect(shown(events)).toBe(
      [
        '  → write()',
        '  write › → look()',
        '  write › ✓ look 5 ms  seen',
        '  write › ✓ save 5 ms  saved',
        '',
      ].join('\n'),
    )
  })

  test('shows the hint of a guard for developers once', () => {
    const message = 'You repeat yourself. (For the developer: mark the tool with polling: true.)'
    const nudge = { type: 'guardrail', guard: 'cycle', action: 'nudge', evidence: 'e', message } as const
    expect(shown([nudge, nudge]).match(/For the developer/g)).toHaveLength(1)
    expect(shown([nudge, nudge]).match(/You repeat yourself\./g)).toHaveLength(2)
  })

  test('ends with its totals and their limits', () => {
    const renderer = createHumanRenderer({
      color: false,
      limits: { ...limits, tokenBudget: 2_000, costLimit: 2 },
    })
    const usage = {
      ...noUsage,
      inputTokens: 1_200,
      outputTokens: 34,
      totalTokens: 1_234,
      cost: 0.0123,
      estimated: true,
    }
    const result: RunResult = {
      state: 'COMPLETED',
      reason: 'end_turn',
      output: '',
      messages: [],
      usage,
      steps: 3,
      resumable: false,
      sessionId: 's',
      runId: 'r',
    }
    renderer.renderEvent(stamped(warns, 1))
    renderer.renderEvent(stamped(warns, 26))
    expect(renderer.renderResult(result)).toBe(
      [
        '',
        'COMPLETED · end_turn',
        '  steps   3 of 50',
        '  tokens  ≈ 1,234 of 2,000 (1,200 in, 34 out)',
        '  cost    $0.0123 of $2.00',
        '  time    2.5 s',
        '',
      ].join('\n'),
    )
  })

  test('contains no escape sequence without color, whatever the model writes', () => {
    fc.assert(
      fc.property(fc.array(unicodeText()), (texts) => {
        const all = texts.flatMap((text): EmittedEvent[] => [
          says(text, { reasoning: text }),
          { type: 'error', code: text, message: text, recoverable: false },
          { type: 'tool_progress', callId: 'c', name: text, progress: text },
          { type: 'tool_result', callId: 'c', name: text, status: 'error', content: text, durationMs: 0 },
          {
            type: 'user_message',
            message: { id: 'm', createdAt: 0, role: 'user', content: [{ type: 'text', text }] },
          },
        ])
        expect(shown(all)).not.toMatch(/[^\P{Cc}\t\n]/u)
      }),
    )
  })
})

test.each([
  [{ isTTY: true }, {}, true],
  [{ isTTY: false }, {}, false],
  [{}, {}, false],
  [{ isTTY: true }, { NO_COLOR: '1' }, false],
  [{ isTTY: true }, { NO_COLOR: '' }, true],
  [{ isTTY: true }, { TERM: 'dumb' }, false],
  [{ isTTY: false }, { FORCE_COLOR: '1' }, true],
  [{ isTTY: true }, { FORCE_COLOR: '0' }, false],
  [{ isTTY: false }, { FORCE_COLOR: '3', NO_COLOR: '1' }, true],
])('has colors in a stream %j with %j: %p', (stream, env, color) => {
  expect(wantsColor(stream, env)).toBe(color)
})

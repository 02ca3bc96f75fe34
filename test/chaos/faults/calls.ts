import { answered, delta, streamed } from '../script.js'
import { asking, type Fault, half, some } from './fault.js'

export const calls = {
  'calls one tool': asking((scene) => [
    { id: `call_${scene.world.below(1e9)}`, name: some(scene), arguments: '{"n":1}' },
  ]),
  'calls several tools': asking((scene) =>
    [1, 2, 3].map((n) => ({
      id: `call_${scene.world.below(1e9)}`,
      name: some(scene),
      arguments: `{"n":${n}}`,
    })),
  ),
  'loads a skill': asking((scene) => [
    { id: `call_${scene.world.below(1e9)}`, name: 'load_skill', arguments: '{"name":"looking"}' },
  ]),
  'hands over': asking((scene) => [
    { id: `call_${scene.world.below(1e9)}`, name: 'transfer_to_billing', arguments: '{}' },
  ]),
  'calls with one id again': asking((scene) => [{ id: 'call_1', name: some(scene), arguments: '{"n":1}' }]),
  'duplicated ids': asking((scene) =>
    [1, 2, 3].map((n) => ({ id: 'same', name: some(scene), arguments: `{"n":${n}}` })),
  ),
  'no ids': asking((scene) => [1, 2].map((n) => ({ name: some(scene), arguments: `{"n":${n}}` }))),
  'odd ids': asking((scene) =>
    ['', ' ', half, 'i'.repeat(200), 'a/b', '__proto__', 7].map((id) => ({
      id,
      name: some(scene),
      arguments: '{"n":1}',
    })),
  ),
  'odd indices': (scene) =>
    streamed(
      ...[-1, 1e9, 'x', null].map((index) =>
        delta({
          tool_calls: [
            {
              index,
              id: `call_${index}`,
              type: 'function',
              function: { name: some(scene), arguments: '{"n":1}' },
            },
          ],
        }),
      ),
      delta({}, 'tool_calls'),
      'data: [DONE]\n\n',
    ),
  'odd names': asking(() =>
    ['', 'a.b', 'n'.repeat(80), '__proto__', 'constructor', half, 'look\u0000', 7].map((name, i) => ({
      id: `call_${i}`,
      name,
      arguments: '{}',
    })),
  ),
  'odd arguments': asking((scene) =>
    [
      '',
      'null',
      '[]',
      '42',
      '"x"',
      '{"n":',
      '{"n":1}}',
      '{"n":1,"n":2}',
      '{"__proto__":{"n":1}}',
      `{"n":"${half}"}`,
      '{"n":"\\ud83d"}',
      'not JSON',
      { n: 1 },
    ].map((input, i) => ({ id: `call_${i}`, name: some(scene), arguments: input })),
  ),
  'deep arguments': asking((scene) => [
    { id: 'call_deep', name: some(scene), arguments: `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}` },
  ]),
  'many calls': asking((scene) =>
    Array.from({ length: 300 }, (_, i) => ({ id: `call_m${i}`, name: some(scene), arguments: `{"n":${i}}` })),
  ),
  'halves of surrogate pairs': (scene) =>
    answered(
      {
        text: `a${half}b`,
        reasoning: half,
        calls: [{ id: 'call_h', name: some(scene), arguments: `{"n":"${half}"}` }],
        finish: 'tool_calls',
      },
      scene.stream,
    ),
} satisfies Record<string, Fault>

import { answered } from '../script.js'
import { type Fault, half, inChoice, raw, saying, some } from './fault.js'

/** Unrequested answers. */
export const answers = {
  'answers well': (scene) => answered({ text: scene.text, reasoning: 'Hm.' }, scene.stream),
  'a wrong role': inChoice({ role: 'user', content: 'I am you.' }),
  'content that is no text': ({ world, ...scene }) =>
    inChoice({ role: 'assistant', content: world.pick([42, {}, [{ type: 'text', text: 7 }], [null], true]) })(
      { world, ...scene },
    ),
  'calls that are no list': ({ world, ...scene }) =>
    inChoice(
      {
        role: 'assistant',
        content: null,
        tool_calls: world.pick(['x', {}, [null], [{}], [{ function: 3 }]]),
      },
      'tool_calls',
    )({ world, ...scene }),
  'a finish reason that is none': ({ world, ...scene }) =>
    answered({ text: 'Hi.', finish: world.pick([7, 'whatever', '', {}, []]) }, scene.stream),
  'usage that is none': ({ world, ...scene }) =>
    answered(
      {
        text: 'Hi.',
        usage: world.pick([
          null,
          'many',
          { prompt_tokens: -5 },
          { prompt_tokens: 'x', completion_tokens: Infinity },
          [],
          7,
        ]),
      },
      scene.stream,
    ),
  'an empty answer': saying({ text: '' }),
  'blanks alone': saying({ text: ' \n ' }),
  'thoughts alone': saying({ reasoning: 'Hm.' }),
  truncated: saying({ text: 'The answer is fo', finish: 'length' }),
  'truncated before its first word': saying({ text: '', finish: 'length' }),
  'a truncated call': (scene) =>
    answered(
      { calls: [{ id: 'call_t', name: some(scene), arguments: '{"n": 1' }], finish: 'length' },
      scene.stream,
    ),
  filtered: saying({ text: 'I', finish: 'content_filter' }),
  'a refusal': inChoice({ role: 'assistant', content: null, refusal: 'No.' }),
  'a call of the form of old': (scene) =>
    inChoice(
      { role: 'assistant', content: null, function_call: { name: some(scene), arguments: '{"n":1}' } },
      'function_call',
    )(scene),
  'finished with calls, without any': saying({ text: 'Hi.', finish: 'tool_calls' }),
  'a letter in two writes': ({ stream, text }) => {
    const { body, ...rest } = answered({ text: `${text} 😀 é` }, stream)
    const bytes = Buffer.concat([...(body ?? [])].map((act) => Buffer.from(act as string)))
    const at = bytes.indexOf(0xf0) + 2
    return { ...rest, body: [bytes.subarray(0, at), bytes.subarray(at)] }
  },
  'NUL and other controls': saying({ text: 'a\u0000b\u001b[31m\u202e\ufeff' }),
  'a huge answer': saying({ text: 'word '.repeat(40_000) }),
  'a line without end': raw([`data: ${'x'.repeat(300_000)}`]),
  'extras to be echoed': inChoice({
    role: 'assistant',
    content: 'Hi.',
    reasoning_details: [{ type: 'x', text: half }, 7, null, { deep: [[[[]]]] }],
    extra_content: { [half]: half },
  }),
} satisfies Record<string, Fault>

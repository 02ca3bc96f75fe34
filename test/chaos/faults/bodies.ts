import { chunksOf, completion, delta, event, json, midway, streamed } from '../script.js'
import { failure, type Fault, raw, type Scene } from './fault.js'

/** Bodies that are not answers. */
export const bodies = {
  'an empty body': raw([]),
  junk: raw(['{]}%$ \u0000\ufffe']),
  'binary junk': raw([Uint8Array.from({ length: 300 }, (_, i) => (i * 89) % 256)]),
  'half JSON': ({ stream, text }) =>
    stream
      ? streamed(event({ choices: [] }), delta({ content: text }).slice(0, 60))
      : raw([JSON.stringify(completion({ text })).slice(0, 50)])({ stream } as Scene),
  'JSON that is not a object': ({ stream, world }) => {
    const value = world.pick(['null', '42', '"text"', '[]', 'true'])
    return stream ? streamed(`data: ${value}\n\n`, 'data: [DONE]\n\n') : raw([value])({ stream } as Scene)
  },
  'no choices': () => json({ id: 'c', object: 'chat.completion', choices: [] }),
  'choices that are no list': ({ stream }) =>
    stream
      ? streamed(event({ choices: 'none' }), event({ choices: null }), 'data: [DONE]\n\n')
      : json({ choices: { 0: 'x' } }),
  'the end alone': () => streamed('data: [DONE]\n\n'),
  'an error object with status 200': () => json(failure('The model crashed.', { code: 500 })),
  'an error object in the stream': raw([...midway(event(failure('The model crashed.')))]),
  'an error event in the stream': raw([...midway(`event: error\n${event({ message: 'Overloaded' })}`)]),
  'an error that is a text': () => json({ error: 'nope' }, 500),
  'no end': ({ text }) => streamed(...chunksOf({ text }).slice(0, -2)),
  'words after the end': ({ text }) =>
    streamed(...chunksOf({ text }), 'data: [DONE]\n\n', delta({ content: 'more' }), 'data: [DONE]\n\n'),
  'other line ends': ({ text }) =>
    streamed(
      '\ufeff: hello\r\n\r\n',
      ...chunksOf({ text }).map((line) => `id: 1\r\nevent: message\r\n${line.replaceAll('\n', '\r\n')}`),
      'data: [DONE]\r\n\r\n',
    ),
} satisfies Record<string, Fault>

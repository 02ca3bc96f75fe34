// A minimal agent loop on XState: two states, two promise actors, a transcript. It has no limits, no guards and no emitted events.
// Its cost is the cost of statecharts.
import { assign, createActor, fromPromise, setup, toPromise } from 'xstate'

export function minimalMachine(model, execute) {
  const machine = setup({
    actors: {
      ask: fromPromise(({ input }) => model.request({ messages: input }, {})),
      call: fromPromise(async ({ input: { id, function: call } }) => ({
        role: 'tool',
        tool_call_id: id,
        content: await execute(JSON.parse(call.arguments)),
      })),
    },
  }).createMachine({
    context: { messages: [{ role: 'user', content: 'Go.' }], text: '', tokens: 0, call: null },
    output: ({ context: { text, tokens } }) => ({ text, tokens }),
    initial: 'asking',
    states: {
      asking: {
        invoke: {
          src: 'ask',
          input: ({ context }) => context.messages,
          onDone: [
            {
              guard: ({ event }) => event.output.toolCalls.length > 0,
              target: 'calling',
              actions: assign(({ context, event: { output } }) => ({
                messages: [
                  ...context.messages,
                  { role: 'assistant', content: null, tool_calls: output.toolCalls },
                ],
                tokens: context.tokens + output.usage.totalTokens,
                call: output.toolCalls[0],
              })),
            },
            {
              target: 'ended',
              actions: assign(({ context, event: { output } }) => ({
                text: output.text,
                tokens: context.tokens + output.usage.totalTokens,
              })),
            },
          ],
        },
      },
      calling: {
        invoke: {
          src: 'call',
          input: ({ context }) => context.call,
          onDone: {
            target: 'asking',
            actions: assign({ messages: ({ context, event }) => [...context.messages, event.output] }),
          },
        },
      },
      ended: { type: 'final' },
    },
  })
  return () => toPromise(createActor(machine).start())
}

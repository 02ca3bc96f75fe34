import { readFileSync } from 'node:fs'

const read = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')

test('the page and the server of chat-react are short, and add no dependencies to a clone that does not start them', () => {
  const own = [
    'src/chats.ts',
    'src/main.tsx',
    'src/conversation.tsx',
    'src/message.tsx',
    'agent.mjs',
    'server.mjs',
  ].map((file) => read(`examples/chat-react/${file}`))
  expect(own.join('').split('\n').length - 1).toBeLessThanOrEqual(820)
  const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<string, object>
  expect(Object.keys({ ...dependencies, ...devDependencies })).not.toContain('react')
  expect(read('scripts/tasks.mjs')).toContain('npm ci --silent --prefix examples/chat-react')
})

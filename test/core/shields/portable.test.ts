import { build } from 'esbuild'

it('shields bundle for the browser without Node built-ins, and include a client only if it is used', async () => {
  const { outputFiles } = await build({
    entryPoints: ['src/core/shields/index.ts'],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    logLevel: 'silent',
  })
  const code = outputFiles.map(({ text }) => text).join('\n')
  expect(code).toContain('BEGIN UNSAFE CONTENT CATEGORIES')
  expect(code).not.toMatch(/from\s*["']node:|\bBuffer\b|\bprocess\./)
  expect(code.length).toBeLessThan(100_000)
})

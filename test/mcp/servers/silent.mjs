// Never answers, prints text that is not MCP, and ignores requests to exit.
console.log('Welcome to my server!')
console.log('{"welcome":"to my server"}')
console.error(`Loading the universe … as ${process.pid}`)
process.on('SIGTERM', () => undefined)
setInterval(() => undefined, 1000)

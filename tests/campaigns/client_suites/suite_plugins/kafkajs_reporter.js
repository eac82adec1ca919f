// A reporter of jest: writes what became of each test, as lines of JSON, to the file that the environment names.

const fs = require('fs')
const path = require('path')

const VERDICTS = { passed: 'passed', failed: 'failed' }

class Reporter {
  onTestResult(_, result) {
    const file = path.relative(process.cwd(), result.testFilePath)
    const lines = result.testResults.map(each => ({
      test: `${file}::${each.fullName}`,
      verdict: VERDICTS[each.status] || 'skipped',
      reason: (each.failureMessages[0] || '').split('\n')[0],
    }))
    if (result.testExecError) {
      lines.push({ test: file, verdict: 'failed', reason: String(result.testExecError.message).split('\n')[0] })
    }
    fs.appendFileSync(process.env.KAFKA_MSGS_SUITE_REPORT, lines.map(line => JSON.stringify(line) + '\n').join(''))
  }
}

module.exports = Reporter

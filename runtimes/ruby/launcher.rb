# Runs a Ruby action by the action loop: a line of JSON on standard input starts a run, a line on descriptor 3 answers
# it. Words: the name of the action's method. The code is main__.rb, or main.rb of an archive.
require 'json'

answers = IO.for_fd(3, 'w')
answers.sync = true
$stdout.sync = true
name = ARGV.shift.to_s
name = 'main' if name.empty?

begin
  $LOAD_PATH.unshift(Dir.pwd)
  load(%w[main__.rb main.rb].map { |file| File.join(Dir.pwd, file) }.find { |file| File.exist?(file) } ||
    raise(LoadError, 'The archive has no main.rb.'))
  action = method(name)
rescue ScriptError, StandardError => e
  $stderr.puts(e.full_message(highlight: false))
  exit(1)
end

answers.puts('{"ok":true}')
while (line = $stdin.gets)
  message = JSON.parse(line)
  message.each { |key, value| ENV["__OW_#{key.upcase}"] = value if value.is_a?(String) && key != 'value' }
  begin
    result = action.arity.zero? ? action.call : action.call(message['value'] || {})
    text = JSON.generate(result)
  rescue StandardError, SystemStackError => e
    $stderr.puts(e.full_message(highlight: false))
    text = JSON.generate({ error: "An error has occurred: #{e.message}" })
  end
  answers.puts(text)
end

<?php
// Runs a PHP action by the action loop: a line of JSON on standard input starts a run, a line on descriptor 3 answers
// it. Words: the name of the action's function. The code is main__.php, or index.php of an archive.

(static function (): void {
    $answers = fopen('php://fd/3', 'wb');
    ini_set('display_errors', 'stderr');
    register_shutdown_function(static function () use ($answers): void {
        $error = error_get_last();
        if ($error && in_array($error['type'], [E_ERROR, E_CORE_ERROR, E_COMPILE_ERROR, E_USER_ERROR], true)) {
            fwrite($answers, "An error occurred running the action.\n");
        }
    });

    $file = is_file('main__.php') ? 'main__.php' : 'index.php';
    if (!is_file($file)) {
        fwrite(STDERR, "The archive has no index.php.\n");
        exit(1);
    }
    if (is_file('vendor/autoload.php')) {
        require getcwd() . '/vendor/autoload.php';
    }
    require getcwd() . '/' . $file;
    $name = ($GLOBALS['argv'][1] ?? '') ?: 'main';
    if (!function_exists($name)) {
        fwrite(STDERR, "There is no function '$name'.\n");
        exit(1);
    }

    fwrite($answers, "{\"ok\":true}\n");
    while (($line = fgets(STDIN)) !== false) {
        $message = json_decode($line, true);
        foreach ($message as $key => $value) {
            if ($key !== 'value' && is_string($value)) {
                $_ENV['__OW_' . strtoupper($key)] = $value;
                putenv('__OW_' . strtoupper($key) . '=' . $value);
            }
        }
        try {
            $result = $name($message['value'] ?? []) ?? [];
            if (is_object($result) && method_exists($result, 'getArrayCopy')) {
                $result = $result->getArrayCopy();
            }
            // An empty array is an empty object, as in OpenWhisk.
            $text = json_encode($result === [] ? new stdClass() : $result, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE);
        } catch (Throwable $failure) {
            fwrite(STDERR, $failure . "\n");
            $text = 'An error occurred running the action.';
        }
        fwrite($answers, $text . "\n");
    }
})();

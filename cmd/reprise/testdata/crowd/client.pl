# A client of the crowd without any SDK: reads requests as lines of JSON, {n, action, input}, sends them as forms of the
# Query protocol, reads the replies in XML, and writes what it does and is told to its log, and the answer to its output.
# Arguments: endpoint, log.
use strict;
use warnings;
use HTTP::Tiny;
use JSON::PP;
use Time::HiRes qw(time);

my ($endpoint, $file) = @ARGV;
my $json = JSON::PP->new->utf8;
my $http = HTTP::Tiny->new(timeout => 60, keep_alive => 1);
open my $log, '>>', $file or die "$file: $!";
$log->autoflush(1);
STDOUT->autoflush(1);

my %member = (
    Entries => { SendMessageBatch => 'SendMessageBatchRequestEntry', DeleteMessageBatch => 'DeleteMessageBatchRequestEntry',
        ChangeMessageVisibilityBatch => 'ChangeMessageVisibilityBatchRequestEntry' },
    MessageAttributeNames => 'MessageAttributeName', MessageSystemAttributeNames => 'AttributeName', AttributeNames => 'AttributeName',
);

# flatten adds a value to a form, with the names that the Query protocol gives to members of lists and maps.
sub flatten {
    my ($form, $action, $prefix, $value) = @_;
    for my $key (sort keys %$value) {
        my $v = $value->{$key};
        if (ref $v eq 'ARRAY') {
            my $name = ref $member{$key} ? $member{$key}{$action} : $member{$key};
            for my $i (0 .. $#$v) {
                my $at = "$prefix$name." . ($i + 1);
                if (ref $v->[$i]) { flatten($form, $action, "$at.", $v->[$i]) } else { $form->{$at} = $v->[$i] }
            }
        } elsif ($key eq 'MessageAttributes') {
            my $i = 0;
            for my $name (sort keys %$v) {
                my $at = $prefix . 'MessageAttribute.' . ++$i;
                $form->{"$at.Name"} = $name;
                flatten($form, $action, "$at.Value.", $v->{$name});
            }
        } else {
            $form->{"$prefix$key"} = $v;
        }
    }
}

my %entity = (amp => '&', lt => '<', gt => '>', quot => '"', apos => "'");

sub text {
    my ($xml, $name) = @_;
    my ($found) = $xml =~ m{<$name>(.*?)</$name>}s or return undef;
    $found =~ s/&(?:#x([0-9A-Fa-f]+)|#(\d+)|(\w+));/defined $1 ? chr hex $1 : defined $2 ? chr $2 : $entity{$3}/ge;
    return $found;
}

sub fields {
    my ($xml, @names) = @_;
    my %got;
    for (@names) { my $v = text($xml, $_); $got{$_} = $v if defined $v }
    return \%got;
}

sub message {
    my ($xml) = @_;
    my %attributes;
    while ($xml =~ s{<MessageAttribute>(.*?)</MessageAttribute>}{}s) {
        my $one = $1;
        $attributes{ text($one, 'Name') } = fields($one, qw(DataType StringValue BinaryValue));
    }
    my %system;
    while ($xml =~ s{<Attribute>(.*?)</Attribute>}{}s) {
        my $one = $1;
        $system{ text($one, 'Name') } = text($one, 'Value');
    }
    return { %{ fields($xml, qw(MessageId ReceiptHandle Body MD5OfBody)) }, Attributes => \%system, MessageAttributes => \%attributes };
}

sub reply {
    my ($action, $xml) = @_;
    my %reply;
    if ($action eq 'ReceiveMessage') {
        $reply{Messages} = [];
        push @{ $reply{Messages} }, message($1) while $xml =~ m{<Message>(.*?)</Message>}sg;
    } elsif ($action =~ /Batch$/) {
        push @{ $reply{Successful} }, fields($1, qw(Id MessageId MD5OfMessageBody MD5OfMessageAttributes))
            while $xml =~ m{<${action}ResultEntry>(.*?)</${action}ResultEntry>}sg;
        push @{ $reply{Failed} }, fields($1, qw(Id Code Message)) while $xml =~ m{<BatchResultErrorEntry>(.*?)</BatchResultErrorEntry>}sg;
    } elsif ($action eq 'SendMessage') {
        %reply = %{ fields($xml, qw(MessageId MD5OfMessageBody MD5OfMessageAttributes)) };
    } elsif ($action eq 'GetQueueAttributes') {
        while ($xml =~ m{<Attribute>(.*?)</Attribute>}sg) { $reply{Attributes}{ text($1, 'Name') } = text($1, 'Value') }
    }
    return \%reply;
}

# now is an integer: JSON::PP would write a large one as a float.
sub now { return int(time * 1e6) * 1000 }

while (my $line = <STDIN>) {
    my $request = $json->decode($line);
    print $log $json->encode({ n => $request->{n}, at => now(), action => $request->{action}, input => $request->{input} }), "\n";
    my %form = (Action => $request->{action}, Version => '2012-11-05');
    flatten(\%form, $request->{action}, '', $request->{input});
    my $response = $http->post_form($endpoint, \%form);
    my $xml = $response->{content};
    utf8::decode($xml);
    my %answer;
    if ($response->{success}) {
        $answer{reply} = reply($request->{action}, $xml);
    } elsif ($response->{status} == 599) {    # HTTP::Tiny's own: no reply came
        %answer = (code => 'NoReply', message => $xml, status => 0);
    } else {
        %answer = (code => text($xml, 'Code') // 'NoCode', message => text($xml, 'Message') // $xml, status => $response->{status} + 0);
    }
    my $text = $json->encode({ n => $request->{n}, at => now(), %answer });
    print $log "$text\n";
    print "$text\n";
}
